-- sliding-window: 'index:previous:current'. Arguments: count, width, cost, and for cancel the end
-- of the take.
if several or algorithm == 'sliding-window' then
  parse['sliding-window'] = function(state, a)
    local index, previous, current = match(state, '^(-?%d+):(%d+):(%d+)$')
    local count, most = ARGV[a] + 0, floor(farthest / ARGV[a + 1]) + 1
    return word(index, -most, most), word(previous, 0, count), word(current, 0, count)
  end

  apply['sliding-window'] = function(operation, a, at, before, within)
    local count, width, cost = ARGV[a] + 0, ARGV[a + 1] + 0, ARGV[a + 2] + 0
    local index, previous, current = floor(now / width), 0, 0
    local healed = heals and at and at > index + 1
    if healed then at, before, within = index, 0, count end
    if at and at >= index then
      index, previous, current = at, before, within
    elseif at == index - 1 then
      previous = within
    end
    local function result(granted, index, previous, current)
      if previous + current == 0 then return granted, '', now end
      local windows = current > 0 and 2 or 1
      local state = format('%.0f:%.0f:%.0f', index, previous, current)
      return granted, state, (index + windows) * width
    end

    if operation == 'refund' then
      local back = min(cost, current)
      return result('+', index, previous - min(cost - back, previous), current - back)
    end

    if operation == 'cancel' then
      local windows = at - (floor(ARGV[a + 3] / width) - 2)
      if windows == 0 then return result('+', at, before, within - min(cost, within)) end
      if windows == 1 then return result('+', at, before - min(cost, before), within) end
      if healed then return result('0', at, before, within) end
      return '0'
    end

    local left = width - max(0, now - index * width)
    if operation == 'take up to' then
      local weighted = floor(previous * left / width)
      while weighted > 0 and exceeds(weighted, width, previous, left) do weighted = weighted - 1 end
      while exceeds(previous, left, weighted, width) do weighted = weighted + 1 end
      cost = min(cost, count - current - weighted)
    end
    local room = count - current - cost
    if cost < 1 or room < 0 or exceeds(previous, left, room, width) then
      if healed then return result('-', index, previous, current) end
      return '-'
    end
    return result(grant(operation, cost), index, previous, current + cost)
  end
end
