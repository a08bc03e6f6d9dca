-- The script applies operations to states as algorithm.Program does. It returns the states that it
-- found; Go derives the decisions from them.
--
-- KEYS    the keys of the states
-- ARGV[1] the time in µs since 1970; '' for the server's clock
-- ARGV[2] the mode: 'take' and 'take-fraction' (here), 'load' and 'swap' (swap.lua), 'each', 'all',
--         'none' and 'check' (apply.lua)
--
-- The state of a named limiter follows a head: its limit and '|'. The script works on states of the
-- requested limit only. It leaves records with another head, or with reservations or debt, to Go,
-- and returns them instead of a grant (swap.lua). A value that is neither is the error
-- 'WEIRSTATE n', where n is the number of its key. In both cases nothing is written.
--
-- The reply is 'seconds microseconds' of the time, then for each key ' grant state': the grant is
-- '+' for everything requested, '-' for a denial, or units; the state is the one before.

local call, format = redis.call, string.format
local find, match, sub = string.find, string.match, string.sub
local given, mode = ARGV[1], ARGV[2]
local farthest = 5617123009213693 -- the most µs between 1970 and a time in a state
local seconds, micros, now
if given == '' then
  local time = call('TIME')
  seconds, micros = time[1], time[2]
  now = seconds * 1000000 + micros
else
  seconds, micros, now = '0', given, given + 0
end

-- A take under one limit of the linear family: the most frequent operation, before the rest of the
-- script is run. Its state is explained in linear.lua.
--
-- take:          charge and depth in µs, and for a named limiter the head
-- take-fraction: charge and depth in whole µs, the denominator of their fractions, their
--                numerators, 1 if a state too far ahead is healed, and the head
if mode == 'take' or mode == 'take-fraction' then
  local key, charge, depth, head = KEYS[1], ARGV[3] + 0, ARGV[4] + 0, ARGV[5]
  local unit, part, deep, heals = 1, 0, 0, given == ''
  if mode == 'take-fraction' then
    unit, part, deep, heals, head = head + 0, ARGV[6] + 0, ARGV[7] + 0, ARGV[8] == '1', ARGV[9]
  end
  local value = head and redis.pcall('GET', key) or not head and call('GET', key)
  local state = value
  if value and head then
    state = type(value) == 'string' and sub(value, 1, #head) == head and sub(value, #head + 1)
  end
  if state or not value then
    local debt, owed = 0, 0
    if state then
      local tat, fraction
      if unit == 1 then
        tat, fraction = find(state, '^-?%d+$') and state + 0 or farthest + 1, 0
      else
        tat, fraction = match(state, '^(-?%d+):(%d+)$')
        tat = tat and tat + 0 or farthest + 1
      end
      if tat > farthest or tat < -farthest or fraction + 0 >= unit then
        return redis.error_reply('WEIRSTATE 1')
      end
      if tat >= now then debt, owed = tat - now, fraction + 0 end
    end
    local room, left = depth - charge, deep - part
    if left < 0 then room, left = room - 1, left + unit end
    local allowed = debt < room or debt == room and owed <= left
    if allowed then
      debt, owed = debt + charge, owed + part
      if owed >= unit then debt, owed = debt + 1, owed - unit end
    elseif heals and (debt > depth or debt == depth and owed > deep) then
      debt, owed = depth, deep
    else
      return seconds .. ' ' .. micros .. ' - ' .. (state or '')
    end
    local text = format(unit == 1 and '%.0f' or '%.0f:%.0f', now + debt, owed)
    if head then text = head .. text end
    if owed > 0 then debt = debt + 1 end
    if given == '' then
      call('SET', key, text, 'PXAT', format('%.0f', (now + debt) / 1000 + 0.5))
    else
      call('SET', key, text, 'PX', format('%.0f', debt / 1000 + 86400000.5))
    end
    return seconds .. ' ' .. micros .. (allowed and ' + ' or ' - ') .. (state or '')
  end
end
