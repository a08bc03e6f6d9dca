-- One script takes every step. It leaves a state as algorithm.Program does, and returns what the state was: the answer is
-- derived from that, outside.
--
-- KEYS    the names of the states
-- ARGV[1] the time in µs since the Unix epoch, or '' for the server's
-- ARGV[2] 't' or 'r': a Take of one linear limit, the case to be quick in; else see parts.lua
--
-- The value of an account begins with its head and '|', that of its limit's state does not. The script takes steps on states of the
-- limit that is asked for, and nothing else: an account that is another limit's, or has more than a state, is told as it is if it is short (see swap.lua), and
-- nothing is written then. Neither is it for a value that is no state of its limit, which is the error 'WEIRSTATE n', for the n-th key.
--
-- The reply is 'seconds microseconds', of the time, and for each state ' granted old': '+' for all that was asked, '-' for
-- denied, or units; and the state before.

local call, format = redis.call, string.format
local find, match, sub = string.find, string.match, string.sub
local given, mode = ARGV[1], ARGV[2]
local farthest = 5617123009213693 -- from 1970 that a time in a state can be, in µs
local seconds, micros, now
if given == '' then
  local time = call('TIME')
  seconds, micros = time[1], time[2]
  now = seconds * 1000000 + micros
else
  seconds, micros, now = '0', given, given + 0
end

-- What a quick step finds; of an account, without the head.
local function quick(head)
  if not head then return call('GET', KEYS[1]) end
  local old = redis.pcall('GET', KEYS[1])
  if not old then return old end
  if type(old) == 'table' or sub(old, 1, #head) ~= head then
    mode = 'f'
    return
  end
  return sub(old, #head + 1)
end

-- Whole µs. ARGV: charge, the most debt that leaves room for it, the debt above which a state is healed, and of an account 'head|'.
local old
if mode == 't' then old = quick(ARGV[6]) end
if mode == 't' then
  local key, head = KEYS[1], ARGV[6] or ''
  local debt = 0
  if old then
    local tat = find(old, '^-?%d+$') and old + 0 or farthest + 1
    if tat > farthest or tat < -farthest then return redis.error_reply('WEIRSTATE 1') end
    if tat > now then debt = tat - now end
  end
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
      call('SET', key, head .. format('%.0f', tat), 'PXAT', format('%.0f', tat / 1000 + 0.5))
    else
      call('SET', key, head .. format('%.0f', tat), 'PX', format('%.0f', after / 1000 + 86400000.5))
    end
  end
  return seconds .. ' ' .. micros .. (allowed and ' + ' or ' - ') .. (old or '')
end

-- Fractions of a µs. ARGV: the same in µs, then the denominator, then the three numerators, and of an account 'head|'.
if mode == 'r' then old = quick(ARGV[10]) end
if mode == 'r' then
  local key, head = KEYS[1], ARGV[10] or ''
  local debt, owed = 0, 0
  if old then
    local tat, rem = match(old, '^(-?%d+):(%d+)$')
    tat = tat and tat + 0 or farthest + 1
    if tat > farthest or tat < -farthest or rem + 0 >= ARGV[6] + 0 then return redis.error_reply('WEIRSTATE 1') end
    if tat >= now then debt, owed = tat - now, rem + 0 end
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
    local state = head .. format('%.0f:%.0f', tat, part)
    if given == '' then
      call('SET', key, state, 'PXAT', format('%.0f', (tat + 1) / 1000 + 0.5))
    else
      call('SET', key, state, 'PX', format('%.0f', (after + 1) / 1000 + 86400000.5))
    end
  end
  return seconds .. ' ' .. micros .. (allowed and ' + ' or ' - ') .. (old or '')
end
