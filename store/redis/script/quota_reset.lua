-- quota-reset: 'start:used'. Arguments: count, width, cost.
if several or algorithm == 'quota-reset' then
  parse['quota-reset'] = function(state, a)
    local start, used = match(state, '^(-?%d+):(%d+)$')
    return time(start), word(used, 0, ARGV[a] + 0)
  end

  apply['quota-reset'] = function(operation, a, start, used)
    local count, width, cost = ARGV[a] + 0, ARGV[a + 1] + 0, ARGV[a + 2] + 0
    local healed = heals and start and start > now + width
    if healed then start, used = now, count end
    local open = start and start + width > now
    if not open then start, used = now, 0 end
    local granted, after = consume(operation, cost, count, used, healed)
    if after == 0 and open then return granted, format('%.0f:0', start), start + width end
    return counter(granted, start, after, start + width)
  end
end
