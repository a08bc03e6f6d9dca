-- The linear family: 'tat', or 'tat:rem' where the interval between units has a fraction.
-- ARGV: denominator, depth, its numerator, heals, and T, R: charge, its numerator; C: these, end, whether it is a queue;
-- U: cost, then the charges of 2^k units and their numerators, k falling to 0.

local linear
if kinds == 'l' or kinds == 'h' or many then
  -- Returns what was granted, and the new tat and rem: nil if nothing changes.
  linear = function(tat, rem, op, a)
    local unit, depth, deep = ARGV[a] + 0, ARGV[a + 1] + 0, ARGV[a + 2] + 0
    local debt, owed = 0, 0
    if tat and tat >= now then debt, owed = tat - now, rem end
    local healed = ARGV[a + 3] == '1' and (debt > depth or debt == depth and owed > deep)
    if healed then debt, owed = depth, deep end

    local function plus(x, y)
      debt, owed = debt + x, owed + y
      if owed >= unit then debt, owed = debt + 1, owed - unit end
      if owed < 0 then debt, owed = debt - 1, owed + unit end
    end

    if op == 'U' then
      local cost, n, room, left = ARGV[a + 4] + 0, 0, depth - debt, deep - owed
      if left < 0 then room, left = room - 1, left + unit end
      local last = a + 5 + ARGV[a + 5] * 2 -- of the pairs
      local weight = 2 ^ (ARGV[a + 5] - 1)
      for i = a + 6, last, 2 do
        local x, y = ARGV[i] + 0, ARGV[i + 1] + 0
        if n + weight <= cost and (x < room or x == room and y <= left) then
          n, room, left = n + weight, room - x, left - y
          if left < 0 then room, left = room - 1, left + unit end
          plus(x, y)
        end
        weight = weight / 2
      end
      if n > 0 then return format('%.0f', n), now + debt, owed end
      if healed then return '-', now + debt, owed end
      return '-'
    end

    local charge, part = ARGV[a + 4] + 0, ARGV[a + 5] + 0
    if op == 'T' then
      local most, rest = depth - charge, deep - part
      if rest < 0 then most, rest = most - 1, rest + unit end
      if debt < most or debt == most and owed <= rest then
        plus(charge, part)
        return '+', now + debt, owed
      end
      if healed then return '-', now + debt, owed end
      return '-'
    end

    if debt == 0 and owed == 0 then return '0' end -- all has come back by itself
    local granted = '+'
    if op == 'C' then
      local till = ARGV[a + 6] - now
      if ARGV[a + 7] == '1' then
        if debt + (owed > 0 and 1 or 0) ~= till then granted = '0' end
      else
        if unit > 1 then till = till - 1 end
        if till < charge or till == charge and part > 0 then charge, part = till, 0 end
        if charge < 0 then granted = '0' end
      end
      if granted == '0' then
        if healed then return granted, now + debt, owed end
        return granted
      end
    end
    if debt < charge or debt == charge and owed < part then return granted, now, 0 end
    plus(-charge, -part)
    return granted, now + debt, owed
  end
end

if kinds == 'l' or many then
  forms.l = function(old, a)
    if ARGV[a] == '1' then return time(match(old, '^-?%d+$')), 0 end
    local tat, rem = match(old, '^(-?%d+):(%d+)$')
    return time(tat), word(rem, 0, ARGV[a] - 1)
  end

  steps.l = function(op, a, tat, rem)
    local granted
    granted, tat, rem = linear(tat, rem, op, a)
    if tat == nil then return granted end
    if ARGV[a] == '1' then return granted, format('%.0f', tat), tat end
    return granted, format('%.0f:%.0f', tat, rem), rem > 0 and tat + 1 or tat
  end
end
