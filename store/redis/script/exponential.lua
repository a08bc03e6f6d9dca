-- exponential: 'time:rate', the rate with the 17 digits that tell it from all others.
-- ARGV: limit, period, whether it is strict, heals, cost.
-- The operations are those of the Go program, in its order.
if kinds == 'e' or many then
  -- e^-x and 1 - e^-x
  local function decay(x)
    if x >= 700 then return 0, 1 end
    local k = floor(x / 0.693147180559945309417232121458176568 + 0.5)
    local r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10
    local series = 1 / 1307674368000
    series = 1 / 87178291200 - r * series
    series = 1 / 6227020800 - r * series
    series = 1 / 479001600 - r * series
    series = 1 / 39916800 - r * series
    series = 1 / 3628800 - r * series
    series = 1 / 362880 - r * series
    series = 1 / 40320 - r * series
    series = 1 / 5040 - r * series
    series = 1 / 720 - r * series
    series = 1 / 120 - r * series
    series = 1 / 24 - r * series
    series = 1 / 6 - r * series
    series = 1 / 2 - r * series
    series = 1 - r * series
    local gone = r * series
    if k == 0 then return 1 - gone, gone end
    local left = math.ldexp(1 - gone, -k)
    return left, 1 - left
  end

  forms.e = function(old)
    local at, rate = match(old, '^(-?%d+):(%d[%d.e+-]*)$')
    return time(at), word(rate, 0, 1.7976931348623157e308)
  end

  steps.e = function(op, a, at, rate)
    local limit, period, cost = ARGV[a] + 0, ARGV[a + 1] + 0, ARGV[a + 4] + 0
    local healed = false
    if at then
      healed = ARGV[a + 3] == '1' and at > now + period
      if healed then at, rate = now, limit end
    else
      at, rate = now, 0
    end
    local x, left, gone
    if now > at then
      x = (now - at) / period
      left, gone = decay(x)
    end
    local function after(cost)
      if not x then return rate + cost end
      local old = left * rate
      local added = cost * (gone / x)
      return max(old + added, cost)
    end
    -- Fresh when the rate makes no difference to one unit: at h with rate <= (1 - (1 - e^-h)/h)·e^h, so at 1 for a rate of 1, at 2
    -- for 4; then (1 - 1/h) >= 1/2.
    local function measured(at, rate)
      local periods = rate <= 1 and 1 or max(2, math.log(2 * rate) + 0.001)
      return format('%.0f:%.17g', at, rate), at + floor(period * periods) + 1
    end

    if op == 'T' or op == 'U' then
      local allowed = true
      if op == 'U' then
        local used, gain = after(0), x and gone / x or 1
        local room = floor(max(0, min(limit, (limit - used) / gain)))
        while room > 0 and after(room) > limit do room = room - 1 end
        while room < limit and after(room + 1) <= limit do room = room + 1 end
        cost = min(cost, room)
        if cost < 1 then allowed, cost = false, 1 end
      end
      local rated = after(cost)
      allowed = allowed and rated <= limit
      if allowed then return grant(op, cost), measured(max(now, at), rated) end
      if ARGV[a + 2] == '1' then return '-', measured(max(now, at), rated) end
      if healed then return '-', measured(at, rate) end
      return '-'
    end

    local rest = rate - cost
    if x then rest = rate - cost * ((gone / left) / x) end
    if rest <= 0 then return '+', '', now end
    return '+', measured(at, rest)
  end
end
