-- One script takes every step. It leaves a state as algorithm.Program does, and returns what the state was: the answer is
-- derived from that, outside.
--
-- KEYS    the names of the states
-- ARGV[1] the time in µs since the Unix epoch, or '' for the server's
-- ARGV[2] 't' or 'r': a Take of one linear limit, the case to be quick in; else see parts.lua
--
-- The reply is 'seconds microseconds', of the time, and for each state ' granted old': '+' for all that was asked, '-' for
-- denied, or units; and the state before.

local call, format = redis.call, string.format
local given, mode = ARGV[1], ARGV[2]
local seconds, micros, now
if given == '' then
  local time = call('TIME')
  seconds, micros = time[1], time[2]
  now = seconds * 1000000 + micros
else
  seconds, micros, now = '0', given, given + 0
end

-- Whole µs. ARGV: charge, the most debt that leaves room for it, the debt above which a state is healed.
if mode == 't' then
  local key = KEYS[1]
  local old = call('GET', key)
  local debt = old and old - now or 0
  if debt < 0 then debt = 0 end
  local after
  local allowed = debt <= ARGV[4] + 0
  if allowed then
    after = debt + ARGV[3]
  elseif debt > ARGV[5] + 0 then
    after = ARGV[5] + 0
  end
  if after then
    local tat = now + after
    if given == '' then
      call('SET', key, format('%.0f', tat), 'PXAT', format('%.0f', tat / 1000 + 0.5))
    else
      call('SET', key, format('%.0f', tat), 'PX', format('%.0f', after / 1000 + 86400000.5))
    end
  end
  return seconds .. ' ' .. micros .. (allowed and ' + ' or ' - ') .. (old or '')
end

-- Fractions of a µs. ARGV: the same in µs, then the denominator, then the three numerators.
if mode == 'r' then
  local key = KEYS[1]
  local old = call('GET', key)
  local debt, owed = 0, 0
  if old then
    local colon = string.find(old, ':', 1, true)
    debt = string.sub(old, 1, colon - 1) - now
    if debt < 0 then
      debt = 0
    else
      owed = string.sub(old, colon + 1) + 0
    end
  end
  local after, part
  local most, ceiling = ARGV[4] + 0, ARGV[5] + 0
  local allowed = debt < most or debt == most and owed <= ARGV[8] + 0
  if allowed then
    local unit = ARGV[6] + 0
    after, part = debt + ARGV[3], owed + ARGV[7]
    if part >= unit then after, part = after + 1, part - unit end
  elseif debt > ceiling or debt == ceiling and owed > ARGV[9] + 0 then
    after, part = ceiling, ARGV[9] + 0
  end
  if after then
    local tat = now + after
    local state = format('%.0f:%.0f', tat, part)
    if given == '' then
      call('SET', key, state, 'PXAT', format('%.0f', (tat + 1) / 1000 + 0.5))
    else
      call('SET', key, state, 'PX', format('%.0f', (after + 1) / 1000 + 86400000.5))
    end
  end
  return seconds .. ' ' .. micros .. (allowed and ' + ' or ' - ') .. (old or '')
end
