-- Everything but the quick case. ARGV[2] says how the parts belong together:
--
-- 'j' all are to be granted what they ask, or none; 'l' none is; 'e' each is for itself, one after another.
--
-- ARGV[3] has a letter for the machine of each part. Then come for each part: the operation, how many arguments, 'head|' of an account or
-- '', the arguments. Besides the machines' operations there are 'P', a peek; 'I', a peek at all of a state; 'X', which forgets it.

-- Mode 'k' tries all commands that the script may need, on a key of its own.
if mode == 'k' then
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

local function step(key, kind, op, a)
  local head = ARGV[a - 1]
  if op == 'X' then
    return '0', '', function() call('UNLINK', key) end
  end
  if kind == 'g' or kind == 'c' then return steps.g(key, head, op, a) end
  local old = call('GET', key)
  local x, y, z
  if old and head ~= '' then
    if sub(old, 1, #head) ~= head then error(other) end
    old = sub(old, #head + 1)
  end
  if old then x, y, z = forms[kind](old, a) else old = '' end
  if op == 'P' or op == 'I' then return '+', old end
  if old == '' and (op == 'R' or op == 'C') then return '0', old end
  local granted, new, fresh = steps[kind](op, a, x, y, z)
  return granted, old, new, fresh
end

local function write(key, head, new, fresh)
  if type(new) == 'function' then
    new()
  elseif new then
    keep(key, head, new, fresh)
  end
end

-- All states are read, and found to be states, before the first is written: an error leaves none half done. What a part before it has
-- written is then read again, in mode 'e'.
local reply, a, all = { seconds, micros }, 4, mode == 'j'
local parts, written = {}, {}
for i = 1, #KEYS do
  local part = { KEYS[i], sub(kinds, i, i), ARGV[a], a + 3 }
  local fine, granted, old, new, fresh = pcall(step, unpack(part))
  if not fine then
    if type(granted) == 'table' and granted.edge then
      return format('%s %s !%d %.0f', seconds, micros, i, granted.edge)
    end
    local text = granted ~= wrong and (type(granted) == 'table' and granted.err or granted) or 'WEIRSTATE'
    local kind = type(text) == 'string' and find(text, 'WRONGTYPE', 1, true)
    if granted == other or kind and ARGV[a + 2] ~= '' then return part[3] == 'I' and told(values()) or foreign() end
    return redis.error_reply((granted == wrong or kind) and 'WEIRSTATE ' .. i or text)
  end
  part.granted, part.old, part.new, part.fresh = granted, old, new, fresh
  part.denied = sub(granted, -1) == '-'
  all = all and not part.denied
  parts[i] = part
  a = a + 3 + ARGV[a + 1]
end
for i = 1, #KEYS do
  local part = parts[i]
  local key = part[1]
  if mode == 'e' and written[key] then
    part.granted, part.old, part.new, part.fresh = step(unpack(part))
  end
  if mode == 'e' or part.denied or all then
    write(key, ARGV[part[4] - 1], part.new, part.fresh)
    written[key] = true
  end
  reply[2 * i + 1], reply[2 * i + 2] = part.granted, part.old
end
return table.concat(reply, ' ')
