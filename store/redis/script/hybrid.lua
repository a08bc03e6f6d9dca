-- hybrid: '0:start:used' while bursty, '1:tat:rem' while smooth.
-- ARGV: count, width, the charge of count-1 units, its numerator, heals, cost, then as linear.
if kinds == 'h' or many then
  forms.h = function(old, a)
    local phase, at, used = match(old, '^([01]):(-?%d+):(%d+)$')
    return phase, time(at), word(used, 0, phase == '0' and ARGV[a] + 0 or ARGV[a + 6] - 1)
  end

  steps.h = function(op, a, phase, at, used)
    local count, width, cost = ARGV[a] + 0, ARGV[a + 1] + 0, ARGV[a + 5] + 0
    local healed = false
    if phase then
      if ARGV[a + 4] == '1' then
        if phase == '0' and at > now + width then
          at, used, healed = now, count, true
        elseif phase == '1' and at > now + 2 * width then
          at, used, healed = now + width, 0, true
        end
      end
    end
    local takes = op == 'T' or op == 'U'

    local fresh = not phase or phase == '0' and at + width <= now
      or phase == '1' and (at < now or at == now and used == 0)
    if fresh then
      if not takes then return op == 'C' and '0' or '+', '', now end
      cost = min(cost, count)
      return grant(op, cost), format('0:%.0f:%.0f', now, cost), now + width
    end

    if phase == '1' then
      local granted, tat, rem = linear(at, used, op, a + 6)
      if tat == nil then
        if not healed then return granted end
        tat, rem = at, used
      end
      return granted, format('1:%.0f:%.0f', tat, rem), rem > 0 and tat + 1 or tat
    end

    if takes then
      local left = count - used
      if op == 'U' then cost = min(cost, left) end
      if cost < 1 or cost > left then
        if healed then return '-', format('0:%.0f:%.0f', at, used), at + width end
        return '-'
      end
      if cost == left then -- in debt so that one unit passes at the window's end
        local tat, rem = at + width + ARGV[a + 2], ARGV[a + 3] + 0
        return grant(op, cost), format('1:%.0f:%.0f', tat, rem), rem > 0 and tat + 1 or tat
      end
      return grant(op, cost), format('0:%.0f:%.0f', at, used + cost), at + width
    end
    local granted = '+'
    if op == 'C' and at + width ~= ARGV[a + 12] + 0 then
      if not healed then return '0' end
      granted, cost = '0', 0
    end
    return granted, format('0:%.0f:%.0f', at, max(0, used - cost)), at + width
  end
end
