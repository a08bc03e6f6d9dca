-- Values as they are, for who takes the step elsewhere. Mode 'v' tells them; mode 'x' replaces them, all or none, if none has changed. Mode 'f' is that of
-- steps on accounts that are not for the script. Many may ask at once, so they are told short values only; else the reply is ' ?' and nothing.
--
-- They are told after the time as ' ?', and for each key the value's length, ':', the value: '' where there is none, 's' and a string,
-- 'l' and the elements of a list, each but the last ended by a line feed, 'x' for something else.
--
-- ARGV of 'x', for each key: the value that was told, the new one ('=' for the same), 'PX' or 'PXAT', and that time in ms. If one has changed
-- nothing is done, and they are told; else the reply is '+'.

local function values(most)
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

local function told(found)
  local reply = { seconds, ' ', micros, ' ?' }
  for i = 1, #found do
    reply[#reply + 1] = #found[i] .. ':'
    reply[#reply + 1] = found[i]
  end
  return table.concat(reply)
end

local function foreign()
  local found = values(2048)
  return found and told(found) or seconds .. ' ' .. micros .. ' ?'
end

if mode == 'v' then return told(values()) end
if mode == 'f' then return foreign() end

if mode == 'x' then
  local found = values()
  for i = 1, #KEYS do
    if found[i] ~= ARGV[4 * i - 1] then return told(found) end
  end
  for i = 1, #KEYS do
    local key, new, px, ms = KEYS[i], ARGV[4 * i], ARGV[4 * i + 1], ARGV[4 * i + 2]
    local kind = sub(new, 1, 1)
    if kind == '' then
      call('UNLINK', key)
    elseif kind == 's' then
      call('SET', key, sub(new, 2), px, ms)
    elseif kind == 'l' then
      call('SET', key, '', px, ms) -- what a server without memory refuses goes first
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
      call(px == 'PX' and 'PEXPIRE' or 'PEXPIREAT', key, ms)
    end
  end
  return seconds .. ' ' .. micros .. ' +'
end
