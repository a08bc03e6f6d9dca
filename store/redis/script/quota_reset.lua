-- quota-reset: 'start:used'. ARGV: count, width, heals, cost.
if kinds == 'q' or many then
  forms.q = function(old, a)
    local start, used = match(old, '^(-?%d+):(%d+)$')
    return time(start), word(used, 0, ARGV[a] + 0)
  end

  steps.q = function(op, a, start, used)
    local count, width, cost = ARGV[a] + 0, ARGV[a + 1] + 0, ARGV[a + 3] + 0
    local healed = false
    if start then
      healed = ARGV[a + 2] == '1' and start > now + width
      if healed then start, used = now, count end
    end
    local open = start and start + width > now
    if op == 'T' or op == 'U' then
      if not open then start, used = now, 0 end
      if op == 'U' then cost = min(cost, count - used) end
      if cost < 1 or cost > count - used then
        if healed then return '-', format('%.0f:%.0f', start, used), start + width end
        return '-'
      end
      return grant(op, cost), format('%.0f:%.0f', start, used + cost), start + width
    end
    if not open then return '+', '', now end
    return '+', format('%.0f:%.0f', start, max(0, used - cost)), start + width
  end
end
