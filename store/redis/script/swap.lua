-- Compare-and-swap, for operations that Go carries out. 'load' returns the values of the keys.
-- 'swap' replaces them, all or none, if none has changed.
--
-- Values are returned after the time as ' ?', and for each key the length of the value, ':' and the
-- value: '' if there is none, 's' and a string, 'l' and the elements of a list, separated by line
-- feeds, or 'x' for another type.
--
-- Arguments of 'swap', for each key: the loaded value, the new one, and its life in ms. The reply
-- is '+', or '-' if a value has changed.

-- load returns the values; nil if they are longer than a bound.
local function load(most)
  local found, length = {}, 0
  for i = 1, #KEYS do
    local value = redis.pcall('GET', KEYS[i])
    if type(value) == 'table' then
      local n = most and redis.pcall('LLEN', KEYS[i])
      if type(n) == 'number' and n > most / 16 then return end
      value = redis.pcall('LRANGE', KEYS[i], 0, -1)
      value = value.err and 'x' or 'l' .. table.concat(value, '\n')
    else
      value = value and 's' .. value or ''
    end
    found[i] = value
    length = length + #value
    if most and length > most then return end
  end
  return found
end

local function values(found)
  local reply = { seconds, ' ', micros, ' ?' }
  for i = 1, #found do
    reply[#reply + 1] = #found[i] .. ':'
    reply[#reply + 1] = found[i]
  end
  return table.concat(reply)
end

-- leave returns the values of records that are left to Go, if they are short, because many callers
-- may get them at once; otherwise ' ?' alone.
local function leave()
  return values(load(2048) or {})
end

local function replace(key, new, ms)
  local kind = sub(new, 1, 1)
  if kind == '' then
    call('UNLINK', key)
  elseif kind == 's' then
    call('SET', key, sub(new, 2), 'PX', ms)
  elseif kind == 'l' then
    call('SET', key, '', 'PX', ms) -- first the command that a server without memory refuses
    call('UNLINK', key)
    local chunk = {}
    for element in string.gmatch(sub(new, 2), '[^\n]+') do
      chunk[#chunk + 1] = element
      if #chunk == 1000 then
        call('RPUSH', key, unpack(chunk))
        chunk = {}
      end
    end
    if #chunk > 0 then call('RPUSH', key, unpack(chunk)) end
    call('PEXPIRE', key, ms)
  end
end

if mode == 'take' or mode == 'take-fraction' then return leave() end
if mode == 'load' then return values(load()) end
if mode == 'swap' then
  local found = load()
  for i = 1, #KEYS do
    if found[i] ~= ARGV[3 * i] then return seconds .. ' ' .. micros .. ' -' end
  end
  for i = 1, #KEYS do
    replace(KEYS[i], ARGV[3 * i + 1], ARGV[3 * i + 2])
  end
  return seconds .. ' ' .. micros .. ' +'
end
