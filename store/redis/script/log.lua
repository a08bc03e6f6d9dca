-- sliding-log and sliding-buckets: a list of 'position:units', oldest first, where the position is a time in µs, or the index of a
-- cell, and the units are those of all entries up to this one, modulo 2^52. The first element is the last entry that has left
-- the window, so that what is used is the difference of two elements, and entries are found by bisection. Of an account the first element begins with
-- 'head|'. Cells that were emptied may have entries without units; the last entry is the newest cell.
--
-- ARGV: count, span, heals, cost, width, cells (log: 0), and C and N: end. The span is how much older than the newest position an entry
-- is when it no longer counts.
--
-- A state that goes out is a small one that means the same for this operation: 'position:units' of the entries that matter, with the
-- units of others added to one that goes before they do. For cells the newest one's index comes before.

if kinds == 'g' or kinds == 'c' or many then
  local wrap = 4503599627370496

  local function cell(t, width, cells)
    local window = floor(t / width)
    local rest = t - window * width
    local i = floor(rest * cells / width)
    while over(i, width, rest, cells) do i = i - 1 end
    while not over(i + 1, width, rest, cells) do i = i + 1 end
    return window * cells + i
  end

  steps.g = function(key, head, op, a)
    local count, span, cost = ARGV[a] + 0, ARGV[a + 1] + 0, ARGV[a + 3] + 0
    local width, cells = ARGV[a + 4] + 0, ARGV[a + 5] + 0
    local position = cells > 0 and cell(now, width, cells) or now

    -- When an entry at this position no longer counts, in µs, or one after.
    local function gone(p)
      if cells == 0 then return p + span end
      local i = p + span
      local window = floor(i / cells)
      return window * width + floor((i - window * cells) * width / cells) + 2
    end

    -- The whole list. What a server without memory refuses goes first.
    local function rewrite(entry)
      if call('RPUSH', key, head .. '0:0', entry) > 2 then call('LTRIM', key, -2, -1) end
    end

    local function expire(fresh, live)
      if not trusted and (fresh <= now or not live) then
        call('UNLINK', key)
      elseif trusted then
        call('PEXPIRE', key, format('%.0f', max(0, fresh - now) / 1000 + 86400000.5))
      else
        call('PEXPIREAT', key, format('%.0f', fresh / 1000 + 0.5))
      end
    end

    local function line(p, units)
      return format('%.0f:%.0f', p, units % wrap)
    end

    local n = call('LLEN', key)
    if n == 0 then
      if op == 'N' then op = 'T' end
      if op ~= 'T' and op ~= 'U' then return (op == 'R' or op == 'C') and '0' or '+', '' end
      cost = min(cost, count)
      return grant(op, cost), '', function()
        rewrite(line(position, cost))
        expire(gone(position), true)
      end
    end
    if head ~= '' and sub(call('LINDEX', key, 0), 1, #head) ~= head then error(other) end
    n = n - 1 -- the index of the last entry
    if n == 0 then error(wrong) end

    local read
    local function entry(i)
      local text = read and read[i + 1] or call('LINDEX', key, i)
      if i == 0 then text = sub(text, #head + 1) end
      local p, units = match(text, '^(-?%d+):(%d+)$')
      return time(p), word(units, 0, wrap - 1)
    end

    -- Further ahead than the limit can have brought it: times become now, cells a full one.
    local last, total = entry(n)
    local healed = ARGV[a + 2] == '1' and last > position + span
    if healed then
      last = position
      if cells > 0 then
        read, n, total = { head .. '0:0', line(position, count) }, 1, count
      end
    end
    local function at(i)
      local p, units = entry(i)
      if healed and p > position then p = position end
      return p, units
    end
    local ahead = {} -- what a heal writes, from the last entry
    for i = n, healed and cells == 0 and 1 or n + 1, -1 do
      local p, units = entry(i)
      if p <= position then break end
      ahead[#ahead + 1] = line(position, units)
    end
    local function heal()
      if not healed then return end
      if cells > 0 then return rewrite(read[2]) end
      for i = 1, #ahead do call('LSET', key, n + 1 - i, ahead[i]) end
    end
    local mark = healed and 'h' or ''

    local newest = max(position, last)
    local horizon = (cells > 0 and newest or position) - span

    -- The first entry from i on whose position is above a bound, or whose units since a base reach a number. The last one's do.
    local function search(i, bound, base, reach)
      local function there(j)
        local p, units = at(j)
        if base then return (units - base) % wrap >= reach end
        return p > bound
      end
      local step, low = 1, i - 1 -- all up to low don't
      while i < n and not there(i) do
        low, i, step = i, min(n, i + step), step * 2
      end
      while i - low > 1 do
        local middle = floor((low + i) / 2)
        if there(middle) then i = middle else low = middle end
      end
      return i
    end

    local first, base, used = n + 1, total, 0
    if last > horizon then
      first = search(1, horizon)
      local _
      _, base = entry(first - 1)
      used = (total - base) % wrap
      if used > count then error(wrong) end
    end

    local function trim(to) -- without those that have left the window but the last
      call('LTRIM', key, first - 1, to)
      if first > 1 and head ~= '' then call('LSET', key, 0, head .. call('LINDEX', key, 0)) end
    end

    local function digest(...) -- of pairs: position, units
      local text = cells > 0 and format('%.0f', last) or ''
      for i = 1, select('#', ...), 2 do
        local p, units = select(i, ...)
        if units > 0 then
          text = text .. (text == '' and '' or ':') .. format('%.0f:%.0f', p, units)
        end
      end
      return text
    end
    local function full(i) -- the entry up to i that was the last to get units
      if cells == 0 then return i end
      local _, units = at(i)
      return search(first, nil, base, (units - base) % wrap)
    end

    if op == 'P' then return mark .. '+', used > 0 and digest(at(full(n)), used) or digest() end
    if op == 'I' then return '+', sub(table.concat(call('LRANGE', key, 0, -1), ':'), #head + 1) end

    -- C and N: units that were taken at one position, the target, which may have left the window.
    local i, units, there, target, granted = 0, 0, false -- the target's entry
    if op == 'C' or op == 'N' then
      target = (cells > 0 and cell(ARGV[a + 6], width, cells) or ARGV[a + 6]) - span
      if target <= last then
        i = search(1, target - 1)
        local p, sum = at(i)
        local _, before = entry(i - 1)
        there, units = p == target, (sum - before) % wrap
      end
      if not there then units = 0 end
      granted = there
      if cells > 0 then granted = target <= last and target >= last - cells end
      if op == 'N' and not there then op = 'T' end
    end

    if op == 'T' or op == 'U' then
      if op == 'U' then cost = min(cost, count - used) end
      if cost < 1 or cost > count - used then
        local e, l = search(first, nil, base, used - (count - max(cost, 1))), full(n)
        local p, units = at(e)
        units = (units - base) % wrap
        return mark .. '-', e == l and digest(p, used) or digest(p, units, at(l), used - units), healed and function()
          heal()
          expire(gone(last), true)
        end or nil
      end
      local p = last
      if mode ~= 'e' and used > 0 then p = at(full(n)) end -- another part may deny, and this one is then as a peek finds it
      return mark .. grant(op, cost), digest(p, used), function()
        if last <= horizon then
          rewrite(line(newest, cost))
        else
          heal()
          if newest == last then
            call('LSET', key, -1, line(last, total + cost))
          else
            call('RPUSH', key, line(newest, total + cost))
          end
          if first > 1 then trim(-1) end
        end
        expire(gone(newest), true)
      end
    end

    if op == 'R' then
      if cost >= used then
        return mark .. '0', digest(last, used), function() call('UNLINK', key) end
      end
      local left = used - cost
      local e, l = search(first, nil, base, left), full(n)
      local p = at(e)
      return mark .. '0', e == l and digest(p, used) or digest(p, left, at(l), cost), function()
        heal()
        trim(e)
        call('LSET', key, -1, line(p, base + left))
        if cells > 0 and newest > p then call('RPUSH', key, line(newest, base + left)) end
        expire(gone(p), true)
      end
    end

    -- C and N from here on.
    local live = there and i >= first
    local back = min(cost, units)

    local text = granted and cells > 0 and digest() or ''
    local rest = live and used - units or used -- of the other entries
    local ends = live and full(n) == i         -- the target is the last entry with units
    local others = 0
    if rest > 0 then others = at(ends and full(i - 1) or full(n)) end
    if there and (live or cells == 0) then
      if ends then
        text = digest(others, rest, target, units)
      else
        text = digest(target, units, others, rest)
      end
    elseif rest > 0 then
      text = digest(others, rest)
    end

    local remove, lines, before = cells == 0 and units == back, {}, 0
    if back > 0 then
      for j = i, remove and n - 1 or n do
        local p, sum = at(remove and j + 1 or j)
        lines[j] = line(p, sum - back)
      end
      if remove and i == n then before = at(n - 1) end
    end

    local renewed = op == 'N' and cost <= count - used + (live and back or 0)
    if op == 'N' then
      granted = renewed
      if back < cost or not live then -- what is in the way must be told too
        local entries = {}
        for j = first, n do
          local p, sum = at(j)
          local _, less = entry(j - 1)
          entries[#entries + 1] = line(p, sum - less)
        end
        text = table.concat(entries, ':')
      end
    end

    return mark .. (granted and '+' or op == 'N' and '-' or '0'), text, (back > 0 or healed) and function()
      heal()
      local tail = last
      if back > 0 then
        for j = i, remove and n - 1 or n do call('LSET', key, j, lines[j]) end
        if remove then
          if i == n then tail = before end
          call(n == 1 and 'UNLINK' or 'RPOP', key)
        end
      end
      if renewed then
        local _, _, take = steps.g(key, head, 'T', a)
        return take()
      end
      if n > 1 or not remove then expire(gone(tail), used > (live and back or 0)) end
    end or nil
  end
  steps.c = steps.g
end
