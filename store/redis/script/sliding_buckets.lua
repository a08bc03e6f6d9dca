-- sliding-buckets: positions are numbers of buckets, counted from 1970.
if several or algorithm == 'sliding-buckets' then
  kinds['sliding-buckets'] = {
    position = function(log, t)
      local width, n = ARGV[log.a + 1] + 0, log.buckets
      local window = floor(t / width)
      local rest = t - window * width
      local i = floor(rest * n / width)
      while exceeds(i, width, rest, n) do i = i - 1 end
      while not exceeds(i + 1, width, rest, n) do i = i + 1 end
      return window * n + i
    end,

    fresh = function(log, position)
      local i, width, n = position + log.span, ARGV[log.a + 1] + 0, log.buckets
      local window = floor(i / n)
      return window * width + floor((i - window * n) * width / n) + 2
    end,

    filled = function(log, i) return first_with(log, units_to(log, i)) end,

    valid = function(log, target)
      return target <= log.last and target >= log.last - log.buckets
    end,

    -- heal makes the list one full bucket.
    heal = function(log)
      local line = entry_line(log.position, log.count)
      log.elements, log.n, log.total = { log.head .. '0:0', line }, 1, log.count
      return function() rewrite_list(log, line) end
    end,
  }
end
