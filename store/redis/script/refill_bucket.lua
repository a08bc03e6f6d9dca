-- refill-bucket: 'last refill:missing'. ARGV: amount, width, burst, heals, cost.
if kinds == 'b' or many then
  forms.b = function(old, a)
    local last, missing = match(old, '^(-?%d+):(%d+)$')
    return time(last), word(missing, 0, ARGV[a + 2] + 0)
  end

  steps.b = function(op, a, last, missing)
    local amount, width, burst, cost = ARGV[a] + 0, ARGV[a + 1] + 0, ARGV[a + 2] + 0, ARGV[a + 4] + 0
    local healed = false
    if last then
      healed = ARGV[a + 3] == '1' and last > now + width
      if healed then last, missing = now, burst end
      if now >= last then
        local elapsed = floor((now - last) / width)
        if elapsed >= floor((missing - 1) / amount) + 1 then
          last, missing = now, 0
        else
          last, missing = last + elapsed * width, missing - elapsed * amount
        end
      end
    else
      last, missing = now, 0
    end
    local function filled(missing)
      return format('%.0f:%.0f', last, missing), last + (floor((missing - 1) / amount) + 1) * width
    end
    if op == 'T' or op == 'U' then
      if op == 'U' then cost = min(cost, burst - missing) end
      if cost < 1 or cost > burst - missing then
        if healed then return '-', filled(missing) end
        return '-'
      end
      return grant(op, cost), filled(missing + cost)
    end
    if missing <= cost then return '+', '', now end
    return '+', filled(missing - cost)
  end
end
