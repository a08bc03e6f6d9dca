-- The lists of sliding-log (and concurrent) and sliding-buckets: 'position:sum', oldest first. The
-- position is a time in µs, or the number of a bucket. The sum is that of the units of all entries
-- up to this one, modulo 2^52. The first element is the last entry that has left the window. So the
-- use is the difference of two elements, and entries are found by bisection. Under a named limiter
-- the first element begins with the head. Buckets that were emptied may have entries without units;
-- the last entry is the newest bucket.
--
-- Arguments: count, width, cost, the number of buckets (0 for a log), and for cancel and renew the
-- end of the take.
--
-- The state in the reply is a short one that means the same to this operation: 'position:units' of
-- the entries that matter; an entry before them has the units of all others. Under sliding-buckets
-- the number of the newest bucket comes first.
--
-- kinds[algorithm] has the functions that differ: position(log, time); fresh(log, position), the
-- time when an entry has left the window, or 1 µs later; heal(log), which returns a function that
-- writes; filled(log, i), the last entry up to i with units; and valid(log, target, found), whether
-- units of an entry can still be cancelled.
local kinds = {}
local entry_line, entry_at, units_to, own_units, first_above, first_with
local open_list, list_state, latest_state, expire_list, rewrite_list, trim_list
local create_list, take_list, refund_list, cancel_list, apply_list
if several or algorithm == 'sliding-log' or algorithm == 'sliding-buckets' then
  local wrap = 4503599627370496

  function entry_line(position, sum) return format('%.0f:%.0f', position, sum % wrap) end

  -- entry_at returns the position and the sum of an element. Index 0 is that of the first element.
  function entry_at(log, i)
    local text = log.elements and log.elements[i + 1] or call('LINDEX', log.key, i)
    if i == 0 then text = sub(text, #log.head + 1) end
    local position, sum = match(text, '^(-?%d+):(%d+)$')
    position, sum = time(position), word(sum, 0, wrap - 1)
    if log.heal and position > log.position then position = log.position end
    return position, sum
  end

  -- units_to returns the units of the entries from the base of the log up to this one.
  function units_to(log, i)
    local _, sum = entry_at(log, i)
    return (sum - log.base) % wrap
  end

  -- own_units returns the units of one entry.
  function own_units(log, i)
    local _, sum = entry_at(log, i)
    local _, before = entry_at(log, i - 1)
    return (sum - before) % wrap
  end

  -- search returns the first entry from i on that is found, or the last one.
  local function search(log, i, found)
    local step, low = 1, i - 1 -- the entries up to low are not found
    while i < log.n and not found(i) do
      low, i, step = i, min(log.n, i + step), step * 2
    end
    while i - low > 1 do
      local middle = floor((low + i) / 2)
      if found(middle) then i = middle else low = middle end
    end
    return i
  end

  -- first_above searches for a position above a bound.
  function first_above(log, i, bound)
    return search(log, i, function(j) return entry_at(log, j) > bound end)
  end

  -- first_with searches for the entry with which the units in the window reach a number.
  function first_with(log, units)
    return search(log, log.first, function(j) return units_to(log, j) >= units end)
  end

  -- open_list reads a list that is not empty: where its window begins, and the units used in it.
  function open_list(log)
    local key, head = log.key, log.head
    if head ~= '' and sub(call('LINDEX', key, 0), 1, #head) ~= head then error(other) end
    if log.n == 0 then error(wrong) end
    log.last, log.total = entry_at(log, log.n)
    if heals and log.last > log.position + log.span then
      log.heal = log.kind.heal(log)
      log.last = log.position
    end
    local newest = log.buckets > 0 and max(log.position, log.last) or log.position
    log.horizon = newest - log.span
    log.first, log.base, log.used = log.n + 1, log.total, 0
    if log.last > log.horizon then
      log.first = first_above(log, 1, log.horizon)
      local _, base = entry_at(log, log.first - 1)
      log.base, log.used = base, (log.total - base) % wrap
      if log.used > log.count then error(wrong) end
    end
  end

  -- list_state returns a short state, of pairs: position, units.
  function list_state(log, ...)
    local text = log.buckets > 0 and format('%.0f', log.last) or ''
    for i = 1, select('#', ...), 2 do
      local position, units = select(i, ...)
      if units > 0 then
        text = text .. (text == '' and '' or ':') .. format('%.0f:%.0f', position, units)
      end
    end
    return text
  end

  -- latest_state returns a state with all units at the position of the last ones, for a peek.
  function latest_state(log)
    if log.used == 0 then return list_state(log) end
    return list_state(log, entry_at(log, log.kind.filled(log, log.n)), log.used)
  end

  -- expire_list sets the expiry of a list whose last units are at a position. An unused list is
  -- deleted.
  function expire_list(log, position, unused)
    local fresh = log.kind.fresh(log, position)
    if heals and (unused or fresh <= now) then
      call('UNLINK', log.key)
    elseif heals then
      call('PEXPIREAT', log.key, format('%.0f', fresh / 1000 + 0.5))
    else
      call('PEXPIRE', log.key, format('%.0f', max(0, fresh - now) / 1000 + 86400000.5))
    end
  end

  -- rewrite_list makes one entry the whole list.
  function rewrite_list(log, line)
    -- The command that a server without memory refuses is first.
    if call('RPUSH', log.key, log.head .. '0:0', line) > 2 then call('LTRIM', log.key, -2, -1) end
  end

  -- trim_list leaves the entries up to an index, without those before the window except the last.
  function trim_list(log, to)
    call('LTRIM', log.key, log.first - 1, to)
    if log.first > 1 and log.head ~= '' then
      call('LSET', log.key, 0, log.head .. call('LINDEX', log.key, 0))
    end
  end

  -- apply_list applies an operation. It returns the grant, the state for the reply, and a function
  -- that writes, or nil.
  function apply_list(key, operation, a)
    local buckets, kind = ARGV[a + 3] + 0, kinds[ARGV[a - 4]]
    local log = {
      key = key, head = ARGV[a - 1], a = a, kind = kind, n = call('LLEN', key) - 1,
      count = ARGV[a] + 0, cost = ARGV[a + 2] + 0, buckets = buckets,
      span = buckets > 0 and buckets + 1 or ARGV[a + 1] + 0, position = 0,
      last = 0, total = 0, horizon = 0, first = 0, base = 0, used = 0,
    }
    log.position = kind.position(log, now)
    if log.n < 0 then return create_list(log, operation) end
    open_list(log)
    local granted, state, write
    if operation == 'peek' then
      granted, state = '+', latest_state(log)
    elseif operation == 'refund' then
      granted, state, write = refund_list(log)
    elseif operation == 'cancel' or operation == 'renew' then
      granted, state, write = cancel_list(log, operation)
    else
      granted, state, write = take_list(log, operation)
    end
    if log.heal then granted = 'healed:' .. granted end
    return granted, state, write
  end
end
