-- fixed-window: 'index:used'. Arguments: count, width, cost.
if several or algorithm == 'fixed-window' then
  parse['fixed-window'] = function(state, a)
    local index, used = match(state, '^(-?%d+):(%d+)$')
    local most = floor(farthest / ARGV[a + 1]) + 1
    return word(index, -most, most), word(used, 0, ARGV[a] + 0)
  end

  apply['fixed-window'] = function(operation, a, index, used)
    local count, width, cost = ARGV[a] + 0, ARGV[a + 1] + 0, ARGV[a + 2] + 0
    local current = floor(now / width)
    local healed = heals and index and index > current + 1
    if healed then
      index, used = current, count
    elseif not index or index < current then
      index, used = current, 0
    end
    local granted, after = consume(operation, cost, count, used, healed)
    return counter(granted, index, after, (index + 1) * width)
  end
end
