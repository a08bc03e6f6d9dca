-- Shared by the algorithms. The file of each of them defines, if the call needs it,
--
-- parse[algorithm](state, a)          the words of a state; an error if it is no state of the limit
-- apply[algorithm](operation, a, …)   grant, new state, and the time when that equals a new key's
--
-- where a is the index in ARGV of the first argument of the algorithm, and … are the words, if
-- there is a state. The new state is nil if nothing is to be written, and '' if the key is to be
-- deleted. A denial that heals a state returns the healed one.
--
-- Operations are 'take', 'take up to', 'refund' and 'cancel'; the last two find a state.

local floor, min, max = math.floor, math.min, math.max
local heals = given == '' -- a state too far ahead is healed only by the server's clock
local several = #KEYS > 1
local algorithm = ARGV[3] -- of the first key
local parse, apply = {}, {}

-- Errors: the value is no state of its limit; it is a record that is left to Go.
local wrong, other = {}, {}

-- word returns a number in [low, high].
local function word(text, low, high)
  local n = text and tonumber(text)
  if not n or n < low or n > high then error(wrong) end
  return n
end
local function time(text) return word(text, -farthest, farthest) end

-- write stores a state, which expires by the server's clock. A given time may pass more slowly than
-- that clock: then a state stays for a day more.
local function write(key, head, state, fresh)
  if state == '' or heals and fresh <= now then
    call('UNLINK', key)
  elseif heals then
    call('SET', key, head .. state, 'PXAT', format('%.0f', fresh / 1000 + 0.5))
  else
    call('SET', key, head .. state, 'PX', format('%.0f', max(0, fresh - now) / 1000 + 86400000.5))
  end
end

local function grant(operation, cost)
  return operation == 'take' and '+' or format('%.0f', cost)
end

-- consume applies an operation to a counter with used of count units. It returns the grant and the
-- units used then; nil if nothing changes.
local function consume(operation, cost, count, used, healed)
  if operation == 'take up to' then
    cost = min(cost, count - used)
  elseif operation ~= 'take' then
    return '+', max(0, used - cost)
  end
  if cost < 1 or cost > count - used then return '-', healed and used or nil end
  return grant(operation, cost), used + cost
end

-- counter returns the result of an operation on a state 'from:used'.
local function counter(granted, from, used, fresh)
  if not used then return granted end
  if used == 0 then return granted, '', now end
  return granted, format('%.0f:%.0f', from, used), fresh
end

-- exceeds reports whether a·b > c·d, exactly: equal rounded products are compared by their errors.
local exceeds
if several or algorithm == 'sliding-window' or algorithm == 'sliding-buckets' then
  local function rest(a, b, product)
    local x, y = 134217729 * a, 134217729 * b
    local ahigh, bhigh = x - (x - a), y - (y - b)
    local alow, blow = a - ahigh, b - bhigh
    return ((ahigh * bhigh - product) + ahigh * blow + alow * bhigh) + alow * blow
  end
  exceeds = function(a, b, c, d)
    local p, q = a * b, c * d
    if p ~= q or p < 9007199254740992 then return p > q end
    return rest(a, b, p) > rest(c, d, q)
  end
end
