-- Operations on one or several keys. The mode is 'each' (each operation for itself, in order),
-- 'all' (all takes are granted, or none is charged) or 'none' (the grants, but nothing is charged).
--
-- Arguments for each key: algorithm, operation, the number of arguments, the head ('' without a
-- name), and the arguments of the algorithm. 'peek' and 'reset' are operations of all algorithms.

-- 'check' runs every command that the script may need, on a key of its own.
if mode == 'check' then
  local key, soon = KEYS[1], format('%.0f', now / 1000 + 1000)
  call('UNLINK', key)
  call('SET', key, '0', 'PX', '1000')
  call('SET', key, '0', 'PXAT', soon)
  call('GET', key)
  call('UNLINK', key)
  call('RPUSH', key, '0', '1', '2')
  call('PEXPIRE', key, '1000')
  call('PEXPIREAT', key, soon)
  call('LLEN', key)
  call('LINDEX', key, 0)
  call('LRANGE', key, 0, -1)
  call('LSET', key, 0, '3')
  call('LTRIM', key, 1, -1)
  call('RPOP', key)
  call('UNLINK', key)
  return seconds .. ' ' .. micros
end

-- operate applies the operation whose arguments begin at a. It returns the grant, the state before,
-- the new state or a function that writes it, and the time when the new state equals a new key's.
local function operate(key, a)
  local algorithm, operation, head = ARGV[a - 4], ARGV[a - 3], ARGV[a - 1]
  if operation == 'reset' then
    return '0', '', function() call('UNLINK', key) end
  end
  if kinds[algorithm] then return apply_list(key, operation, a) end
  local old = call('GET', key)
  local x, y, z
  if old and head ~= '' then
    if sub(old, 1, #head) ~= head then error(other) end
    old = sub(old, #head + 1)
  end
  if old then x, y, z = parse[algorithm](old, a) else old = '' end
  if operation == 'peek' then return '+', old end
  if old == '' and (operation == 'refund' or operation == 'cancel') then return '0', old end
  local granted, new, fresh = apply[algorithm](operation, a, x, y, z)
  return granted, old, new, fresh
end

-- failure returns the reply after an error of operate.
local function failure(i, a, err)
  if type(err) == 'table' and err.edge then
    return format('%s %s !%d %.0f', seconds, micros, i, err.edge)
  end
  local text = err ~= wrong and (type(err) == 'table' and err.err or err) or 'WEIRSTATE'
  local kind = type(text) == 'string' and find(text, 'WRONGTYPE', 1, true)
  if err == other or kind and ARGV[a - 1] ~= '' then return leave() end
  return redis.error_reply((err == wrong or kind) and 'WEIRSTATE ' .. i or text)
end

-- All states are read before the first is written, so an error leaves none half done. In mode
-- 'each' an operation on a key that an earlier one has written is then applied again.
local reply, a, all = { seconds, micros }, 7, mode == 'all'
local results, written = {}, {}
for i = 1, #KEYS do
  local fine, granted, old, new, fresh = pcall(operate, KEYS[i], a)
  if not fine then return failure(i, a, granted) end
  local denied = sub(granted, -1) == '-'
  all = all and not denied
  results[i] = { a = a, granted = granted, old = old, new = new, fresh = fresh, denied = denied }
  a = a + 4 + ARGV[a - 2]
end
for i = 1, #KEYS do
  local key, r = KEYS[i], results[i]
  if mode == 'each' and written[key] then
    r.granted, r.old, r.new, r.fresh = operate(key, r.a)
  end
  if r.new and (mode == 'each' or r.denied or all) then
    if type(r.new) == 'function' then
      r.new()
    else
      write(key, ARGV[r.a - 1], r.new, r.fresh)
    end
    written[key] = true
  end
  reply[2 * i + 1], reply[2 * i + 2] = r.granted, r.old
end
return table.concat(reply, ' ')
