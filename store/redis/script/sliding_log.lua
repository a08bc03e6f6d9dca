-- sliding-log and concurrent: positions are times in µs.
if several or algorithm == 'sliding-log' then
  kinds['sliding-log'] = {
    position = function(_, t) return t end,
    fresh = function(log, position) return position + log.span end,
    filled = function(_, i) return i end,
    valid = function(_, _, found) return found end,

    -- heal moves the entries after now to now.
    heal = function(log)
      local lines, n = {}, log.n
      for i = n, 1, -1 do
        local position, sum = entry_at(log, i)
        if position <= log.position then break end
        lines[#lines + 1] = entry_line(log.position, sum)
      end
      return function()
        for i = 1, #lines do call('LSET', log.key, n + 1 - i, lines[i]) end
      end
    end,
  }
end
