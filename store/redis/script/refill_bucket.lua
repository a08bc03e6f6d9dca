-- refill-bucket: 'last refill:missing'. Arguments: amount, width, burst, cost.
if several or algorithm == 'refill-bucket' then
  parse['refill-bucket'] = function(state, a)
    local last, missing = match(state, '^(-?%d+):(%d+)$')
    return time(last), word(missing, 0, ARGV[a + 2] + 0)
  end

  apply['refill-bucket'] = function(operation, a, last, missing)
    local amount, width, burst = ARGV[a] + 0, ARGV[a + 1] + 0, ARGV[a + 2] + 0
    local healed = heals and last and last > now + width
    if healed then last, missing = now, burst end
    local function refills(missing) return floor((missing - 1) / amount) + 1 end
    if not last then
      last, missing = now, 0
    elseif now >= last then
      local elapsed = floor((now - last) / width)
      if elapsed >= refills(missing) then
        last, missing = now, 0
      else
        last, missing = last + elapsed * width, missing - elapsed * amount
      end
    end
    local granted, after = consume(operation, ARGV[a + 3] + 0, burst, missing, healed)
    return counter(granted, last, after, after and last + refills(after) * width)
  end
end
