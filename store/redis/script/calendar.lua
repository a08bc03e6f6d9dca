-- calendar: 'start:used'. Arguments: count, cost, the number of edges, and the edges: beginning and
-- end of each window that Go knows of.
if several or algorithm == 'calendar' then
  parse.calendar = function(state, a)
    local start, used = match(state, '^(-?%d+):(%d+)$')
    return time(start), word(used, 0, ARGV[a] + 0)
  end

  apply.calendar = function(operation, a, start, used)
    local count, cost = ARGV[a] + 0, ARGV[a + 1] + 0
    local function window(t)
      for i = a + 3, a + 2 + ARGV[a + 2], 2 do
        local first, last = ARGV[i] + 0, ARGV[i + 1] + 0
        if first <= t and t < last then return first, last end
      end
      error({ edge = t })
    end
    local first, last = window(now)
    local healed = heals and start and start > last
    if healed then
      start, used = first, count
    elseif not start or start < first then
      start, used = first, 0
    elseif start >= last then
      first, last = window(start)
    end
    local granted, after = consume(operation, cost, count, used, healed)
    if operation == 'refund' or operation == 'cancel' then first = max(first, start) end
    return counter(granted, first, after, last)
  end
end
