-- What LANE.TAKE does about maps that somebody deleted, once it has nothing more to give.
--
-- The maps are ordinary keys. Without `tickets` all lanes are made anew. Without `ready` or `until` some keys stand
-- still: their tickets say that they are ready or have a time, and no queue has them. There are more tickets then than
-- times; but parked keys have no time either, so the tickets are looked through, a page of them a second at most.

local LOOK_EVERY_MS = 1000

-- Of these keys and their tickets those that no queue has get their places back. Whether there are such keys.
local function queue_lost(order, pairs_of_page)
  local keys, ready, times = {}, {}, {}
  for i = 1, #pairs_of_page, 2 do
    keys[#keys + 1] = pairs_of_page[i]
  end
  local scores = #keys > 0 and redis.call('ZMSCORE', order['until'], unpack(keys)) or {}
  for i, key in ipairs(keys) do
    local ticket = read_ticket(pairs_of_page[2 * i])
    if not scores[i] and ticket.state == 'ready' then
      ready[#ready + 1] = key
    elseif not scores[i] and ticket.state ~= 'parked' then
      times[#times + 1] = ticket.until_text
      times[#times + 1] = key
    end
  end
  call_with(ready, 'RPUSH', order.ready)
  call_with(times, 'ZADD', order['until'])
  return #ready > 0 or #times > 0
end

-- Whether something was wrong, so that it is worth asking again. No key is ready, and everything was written.
local function mend(order)
  local count = redis.call('HLEN', order.tickets)
  if count == 0 then
    local is_lost = #redis.call('XPENDING', order.stream, order.group, '-', '+', 1, LANES) > 0
    if is_lost then
      begin_rebuild(order)
    end
    return is_lost
  elseif count <= redis.call('ZCARD', order['until']) then
    return false
  end
  local looked, cursor = (order.looked or ''):match('^(%d+) (%d+)$')
  if math.abs(order.now - (tonumber(looked) or 0)) < LOOK_EVERY_MS then
    return false
  end
  local page = redis.pcall('HSCAN', order.tickets, cursor or '0', 'COUNT', PAGE)
  if page.err then -- What somebody else wrote is no cursor.
    page = redis.call('HSCAN', order.tickets, '0', 'COUNT', PAGE)
  end
  local is_wrong = queue_lost(order, page[2])
  -- Where one key stands still, others do: the next page at once.
  redis.call('HSET', order.order, 'looked', text_of(is_wrong and 0 or order.now) .. ' ' .. page[1])
  return is_wrong
end
