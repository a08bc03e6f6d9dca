-- fixed-window: 'index:used'. ARGV: count, width, heals, cost.
if kinds == 'f' or many then
  forms.f = function(old, a)
    local index, used = match(old, '^(-?%d+):(%d+)$')
    local most = floor(farthest / ARGV[a + 1]) + 1
    return word(index, -most, most), word(used, 0, ARGV[a] + 0)
  end

  steps.f = function(op, a, index, used)
    local count, width, cost = ARGV[a] + 0, ARGV[a + 1] + 0, ARGV[a + 3] + 0
    local current = floor(now / width)
    local healed = false
    if index then
      healed = ARGV[a + 2] == '1' and index > current + 1
      if healed then index, used = current, count end
    end
    if op == 'T' or op == 'U' then
      if not index or index < current then index, used = current, 0 end
      if op == 'U' then cost = min(cost, count - used) end
      if cost < 1 or cost > count - used then
        if healed then return '-', format('%.0f:%.0f', index, used), (index + 1) * width end
        return '-'
      end
      return grant(op, cost), format('%.0f:%.0f', index, used + cost), (index + 1) * width
    end
    if index < current or used <= cost then return '+', '', now end
    return '+', format('%.0f:%.0f', index, used - cost), (index + 1) * width
  end
end
