-- The linear family: 'tat', the time in µs since 1970 until which the units taken have paid; or
-- 'tat:numerator' where the interval between units has a fraction of a µs.
--
-- Arguments: the denominator of the fraction, the depth (the time that all units take) and its
-- numerator, 1 if a state too far ahead is healed, and
--   take, refund: the charge and its numerator
--   cancel:       these, the end of the take, and 1 for a queue
--   take up to:   the cost, the number of pairs, and the charges of 2^k units with their
--                 numerators, for k that falls to 0
if several or algorithm == 'linear' then
  parse.linear = function(state, a)
    if ARGV[a] == '1' then return time(match(state, '^-?%d+$')), 0 end
    local tat, part = match(state, '^(-?%d+):(%d+)$')
    return time(tat), word(part, 0, ARGV[a] - 1)
  end

  apply.linear = function(operation, a, tat, part)
    local unit, depth, deep = ARGV[a] + 0, ARGV[a + 1] + 0, ARGV[a + 2] + 0
    local debt, owed = 0, 0
    if tat and tat >= now then debt, owed = tat - now, part end
    local healed = ARGV[a + 3] == '1' and (debt > depth or debt == depth and owed > deep)
    if healed then debt, owed = depth, deep end

    local function result(granted, changed)
      if not changed and not healed then return granted end
      local tat = now + debt
      if unit == 1 then return granted, format('%.0f', tat), tat end
      return granted, format('%.0f:%.0f', tat, owed), owed > 0 and tat + 1 or tat
    end
    local function add(charge, part)
      debt, owed = debt + charge, owed + part
      if owed >= unit then debt, owed = debt + 1, owed - unit end
      if owed < 0 then debt, owed = debt - 1, owed + unit end
    end
    local function fits(charge, part)
      local room, left = depth - charge, deep - part
      if left < 0 then room, left = room - 1, left + unit end
      return debt < room or debt == room and owed <= left
    end

    if operation == 'take up to' then
      local cost, n, weight = ARGV[a + 4] + 0, 0, 2 ^ (ARGV[a + 5] - 1)
      for i = a + 6, a + 5 + ARGV[a + 5] * 2, 2 do
        local charge, part = ARGV[i] + 0, ARGV[i + 1] + 0
        if n + weight <= cost and fits(charge, part) then
          n = n + weight
          add(charge, part)
        end
        weight = weight / 2
      end
      return result(n > 0 and format('%.0f', n) or '-', n > 0)
    end

    local charge, part = ARGV[a + 4] + 0, ARGV[a + 5] + 0
    if operation == 'take' then
      if not fits(charge, part) then return result('-') end
      add(charge, part)
      return result('+', true)
    end

    if debt == 0 and owed == 0 then return '0' end -- all units have come back
    if operation == 'cancel' then
      local till = ARGV[a + 6] - now
      if ARGV[a + 7] == '1' then
        if debt + (owed > 0 and 1 or 0) ~= till then return result('0') end
      else
        if unit > 1 then till = till - 1 end
        if till < charge or till == charge and part > 0 then charge, part = till, 0 end
        if charge < 0 then return result('0') end
      end
    end
    if debt < charge or debt == charge and owed < part then
      debt, owed = 0, 0
    else
      add(-charge, -part)
    end
    return result('+', true)
  end
end
