-- What the machines of the other files share. Each file makes, if it is asked for, two functions. forms[its letter] reads a state that is
-- not '', of (state, where its arguments begin in ARGV), and returns its words; what is no state of the limit is an error.
-- steps[its letter] is of (operation, where its arguments begin, the words or nothing): it returns what was granted, the new state, and
-- when that is fresh.
-- No new state: nothing is to be written; '': the key is to be forgotten.
--
-- Operations: 'T' take, 'U' take up to, 'R' refund, 'C' cancel; of the log 'N' renew. R and C find a state that is not empty, T and U may find ''.
-- Denials that heal return the healed state. Where a state may be healed ARGV says '1': where the time is the server's.

local floor, min, max = math.floor, math.min, math.max
local trusted = given ~= ''
local kinds = ARGV[3]
local many = #KEYS > 1
local forms, steps = {}, {}

-- An error that is the first of these tables is of a value that is no state; the second, of an account that is not for the script; one that has
-- an edge, of a time that is in none of the windows of a calendar that were told.
local wrong, other = {}, {}
local function word(text, low, high)
  local n = text and tonumber(text)
  if not n or n < low or n > high then error(wrong) end
  return n
end
local function time(text) return word(text, -farthest, farthest) end

-- Expiry is by the server's clock. Where the time is the caller's, that may be slower: a day more.
local function keep(key, head, state, fresh)
  if state == '' or not trusted and fresh <= now then
    call('UNLINK', key)
  elseif trusted then
    call('SET', key, head .. state, 'PX', format('%.0f', max(0, fresh - now) / 1000 + 86400000.5))
  else
    call('SET', key, head .. state, 'PXAT', format('%.0f', fresh / 1000 + 0.5))
  end
end

-- What a Take or a TakeUpTo was granted.
local function grant(op, cost)
  return op == 'T' and '+' or format('%.0f', cost)
end

-- Whether a·b > c·d, exactly: where the rounded products are equal, by what was lost in rounding.
local over
if match(kinds, '[wc]') then
  local function lost(a, b, product)
    local x, y = 134217729 * a, 134217729 * b
    local ahigh, bhigh = x - (x - a), y - (y - b)
    local alow, blow = a - ahigh, b - bhigh
    return ((ahigh * bhigh - product) + ahigh * blow + alow * bhigh) + alow * blow
  end
  over = function(a, b, c, d)
    local p, q = a * b, c * d
    if p ~= q or p < 9007199254740992 then return p > q end
    return lost(a, b, p) > lost(c, d, q)
  end
end
