-- sliding-window: 'index:previous:current'. ARGV: count, width, heals, cost, and C: end.
if kinds == 'w' or many then
  forms.w = function(old, a)
    local at, before, within = match(old, '^(-?%d+):(%d+):(%d+)$')
    local count, most = ARGV[a] + 0, floor(farthest / ARGV[a + 1]) + 1
    return word(at, -most, most), word(before, 0, count), word(within, 0, count)
  end

  steps.w = function(op, a, at, before, within)
    local count, width, cost = ARGV[a] + 0, ARGV[a + 1] + 0, ARGV[a + 3] + 0
    local index, previous, current = floor(now / width), 0, 0
    local healed = false
    if at then
      healed = ARGV[a + 2] == '1' and at > index + 1
      if healed then at, before, within = index, 0, count end
      if at >= index then
        index, previous, current = at, before, within
      elseif at == index - 1 then
        previous = within
      end
    end
    local function counted(index, previous, current)
      local windows = current > 0 and 2 or previous > 0 and 1 or 0
      return format('%.0f:%.0f:%.0f', index, previous, current), (index + windows) * width
    end

    if op == 'T' or op == 'U' then
      local left = width - max(0, now - index * width)
      if op == 'U' then
        local weighted = floor(previous * left / width)
        while weighted > 0 and over(weighted, width, previous, left) do weighted = weighted - 1 end
        while over(previous, left, weighted, width) do weighted = weighted + 1 end
        cost = min(cost, count - current - weighted)
      end
      local room = count - current - cost
      if cost < 1 or room < 0 or over(previous, left, room, width) then
        if healed then return '-', counted(index, previous, current) end
        return '-'
      end
      return grant(op, cost), counted(index, previous, current + cost)
    end

    if op == 'R' then
      local back = min(cost, current)
      current, previous = current - back, previous - min(cost - back, previous)
      if current == 0 and previous == 0 then return '+', '', now end
      return '+', counted(index, previous, current)
    end

    local windows = at - (floor(ARGV[a + 4] / width) - 2)
    if windows == 0 then
      within = within - min(cost, within)
    elseif windows == 1 then
      before = before - min(cost, before)
    else
      if healed then return '0', counted(at, before, within) end
      return '0'
    end
    if before == 0 and within == 0 then return '+', '', now end
    return '+', counted(at, before, within)
  end
end
