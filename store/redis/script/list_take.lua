-- Operations on lists: take, take up to and refund.
if several or algorithm == 'sliding-log' or algorithm == 'sliding-buckets' then
  -- create_list applies an operation to a key without a list.
  function create_list(log, operation)
    if operation == 'peek' then return '+', '' end
    if operation == 'refund' or operation == 'cancel' then return '0', '' end
    local cost = min(log.cost, log.count)
    return grant(operation == 'renew' and 'take' or operation, cost), '', function()
      rewrite_list(log, entry_line(log.position, cost))
      expire_list(log, log.position)
    end
  end

  -- deny returns a state with the units that have to leave the window, and the other units.
  local function deny(log, cost)
    local used, last = log.used, log.kind.filled(log, log.n)
    local i = first_with(log, used - (log.count - max(cost, 1)))
    local position, units = entry_at(log, i), units_to(log, i)
    local write = log.heal and function()
      log.heal()
      expire_list(log, log.last)
    end
    if i == last then return '-', list_state(log, position, used), write end
    return '-', list_state(log, position, units, entry_at(log, last), used - units), write
  end

  function take_list(log, operation)
    local cost, used, last = log.cost, log.used, log.last
    local newest = max(log.position, last)
    if operation == 'take up to' then cost = min(cost, log.count - used) end
    if cost < 1 or cost > log.count - used then return deny(log, cost) end
    -- If another part may deny, the state must be that of a peek.
    local state = mode == 'each' and list_state(log, last, used) or latest_state(log)
    return grant(operation, cost), state, function()
      if last <= log.horizon then
        rewrite_list(log, entry_line(newest, cost))
      else
        if log.heal then log.heal() end
        if newest == last then
          call('LSET', log.key, -1, entry_line(last, log.total + cost))
        else
          call('RPUSH', log.key, entry_line(newest, log.total + cost))
        end
        if log.first > 1 then trim_list(log, -1) end
      end
      expire_list(log, newest)
    end
  end

  function refund_list(log)
    local cost, used, key = log.cost, log.used, log.key
    if cost >= used then
      return '0', list_state(log, log.last, used), function() call('UNLINK', key) end
    end
    local left = used - cost
    local i, last = first_with(log, left), log.kind.filled(log, log.n)
    local position = entry_at(log, i)
    local state
    if i == last then
      state = list_state(log, position, used)
    else
      state = list_state(log, position, left, entry_at(log, last), cost)
    end
    return '0', state, function()
      if log.heal then log.heal() end
      trim_list(log, i)
      call('LSET', key, -1, entry_line(position, log.base + left))
      local newest = max(log.position, log.last)
      if log.buckets > 0 and newest > position then
        call('RPUSH', key, entry_line(newest, log.base + left))
      end
      expire_list(log, position)
    end
  end
end
