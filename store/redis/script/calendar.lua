-- calendar: 'start:used'. ARGV: count, heals, cost, how many edges, the edges: of windows, each with its beginning and its end.
if kinds == 'd' or many then
  forms.d = function(old, a)
    local start, used = match(old, '^(-?%d+):(%d+)$')
    return time(start), word(used, 0, ARGV[a] + 0)
  end

  steps.d = function(op, a, start, used)
    local count, cost = ARGV[a] + 0, ARGV[a + 2] + 0
    local function window(t)
      for i = a + 4, a + 3 + ARGV[a + 3], 2 do
        local first, last = ARGV[i] + 0, ARGV[i + 1] + 0
        if first <= t and t < last then return first, last end
      end
      error({ edge = t })
    end
    local first, last = window(now)
    local healed = false
    if start then
      healed = ARGV[a + 1] == '1' and start > last
      if healed then
        start, used = first, count
      elseif start < first then
        start, used = first, 0
      elseif start >= last then
        first, last = window(start)
      end
    else
      start, used = first, 0
    end
    local function counted(from, used) return format('%.0f:%.0f', from, used), last end

    if op == 'T' or op == 'U' then
      if op == 'U' then cost = min(cost, count - used) end
      if cost < 1 or cost > count - used then
        if healed then return '-', counted(start, used) end
        return '-'
      end
      return grant(op, cost), counted(first, used + cost)
    end
    if used <= cost then return '+', '', now end
    return '+', counted(max(first, start), used - cost)
  end
end
