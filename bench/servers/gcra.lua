-- The generic cell rate algorithm (ATM Forum Traffic Management Specification 4.0) in whole microseconds.
-- KEYS[1]: the key. ARGV: burst, microseconds between units, cost.
-- Returns allowed, limit, remaining, retry after, reset after, delay, as WEIR.TAKE does.
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local burst, interval = tonumber(ARGV[1]), tonumber(ARGV[2])
local arrival = tonumber(redis.call('GET', KEYS[1]) or 0)
if arrival < now then arrival = now end
local after = arrival + ARGV[3] * interval
local room = now + burst * interval - after
if room < 0 then
  return {0, burst, math.floor((now + burst * interval - arrival) / interval), -room, arrival - now, 0}
end
redis.call('SET', KEYS[1], string.format('%.0f', after), 'PX', math.ceil((after - now) / 1000))
return {1, burst, math.floor(room / interval), 0, after - now, 0}
