-- Operations on lists: cancel and renew, of units that were taken at one position, the target.
if several or ARGV[4] == 'cancel' or ARGV[4] == 'renew' then
  -- find_target returns the target, its entry (nil if there is none) and the units of the entry.
  local function find_target(log)
    local target = log.kind.position(log, ARGV[log.a + 4] + 0) - log.span
    if target > log.last then return target, nil, 0 end
    local i = first_above(log, 1, target - 1)
    if entry_at(log, i) ~= target then return target, nil, 0 end
    return target, i, own_units(log, i)
  end

  -- target_state returns a state of the entry i of the target and of the other units.
  local function target_state(log, target, i, units)
    local live = i and i >= log.first
    local others, position, ends = live and log.used - units or log.used, 0, false
    if log.used > 0 then
      local last = log.kind.filled(log, log.n)
      ends = live and last == i
      if others > 0 then
        position = entry_at(log, ends and log.kind.filled(log, i - 1) or last)
      end
    end
    if not live and (not i or log.buckets > 0) then return list_state(log, position, others) end
    if ends then return list_state(log, position, others, target, units) end
    return list_state(log, target, units, position, others)
  end

  -- entries returns a state with all entries in the window.
  local function entries(log)
    local lines = {}
    for i = log.first, log.n do
      local position = entry_at(log, i)
      lines[#lines + 1] = entry_line(position, own_units(log, i))
    end
    return table.concat(lines, ':')
  end

  -- removal returns a function that removes units from entry i, and the position of the last entry
  -- then. A log loses an entry without units; buckets keep it.
  local function removal(log, i, units, back)
    local key, n, lines, tail = log.key, log.n, {}, log.last
    local shift = log.buckets == 0 and units == back and 1 or 0
    for j = i, n - shift do
      local position, sum = entry_at(log, j + shift)
      lines[j] = entry_line(position, sum - back)
    end
    if shift == 1 and i == n then tail = entry_at(log, n - 1) end
    return function()
      for j = i, n - shift do call('LSET', key, j, lines[j]) end
      if shift == 1 then call(n == 1 and 'UNLINK' or 'RPOP', key) end
    end, tail
  end

  function cancel_list(log, operation)
    local target, i, units = find_target(log)
    if operation == 'renew' and not i then return take_list(log, 'take') end
    local back = min(log.cost, units)
    local freed = i and i >= log.first and back or 0
    local granted = log.kind.valid(log, target, i) and '+' or '0'
    local state = target_state(log, target, i, units)
    local renewed = false
    if operation == 'renew' then
      renewed = log.cost <= log.count - log.used + freed
      granted = renewed and '+' or '-'
      if freed < log.cost then state = entries(log) end -- other leases are in the way
    end
    if back == 0 and not log.heal then return granted, state end
    local remove, tail = nil, log.last
    if back > 0 then remove, tail = removal(log, i, units, back) end
    return granted, state, function()
      if log.heal then log.heal() end
      if remove then remove() end
      if renewed then
        local _, _, take = apply_list(log.key, 'take', log.a)
        return take()
      end
      expire_list(log, tail, log.used == freed)
    end
  end
end
