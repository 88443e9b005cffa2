-- How keys change hands, and how all changes of a step are written.

-- Write what was gathered. Done entries are deleted once no group needs them, unless they are kept.
local function flush(order, keeps)
  local stream, group = order.stream, order.group
  call_with(order.gone_members, 'ZREM', order.lanes)
  for from = 1, #order.empty_lanes, PART do
    redis.call('DEL', unpack(order.empty_lanes, from, math.min(from + PART - 1, #order.empty_lanes)))
  end
  call_with(order.ticket_words, 'HSET', order.tickets)
  call_with(order.forgotten, 'HDEL', order.tickets)
  call_with(order.timeless, 'ZREM', order['until'])
  call_with(order.until_words, 'ZADD', order['until'])
  for i = #order.front, 1, -1 do -- The first one of all ends up first.
    redis.call('LPUSH', order.ready, order.front[i])
  end
  call_with(order.back, 'RPUSH', order.ready)
  claim(order, LANES, order.freed, 'JUSTID')
  if #order.settled > 0 then
    call_with(order.settled, 'XACK', stream, group)
    if not keeps then
      delete_unneeded(stream, group, order.settled)
    end
  end
  if order.has_new_fence then
    redis.call('HSET', order.order, 'fence', text_of(order.fence))
  end
  if order.heartbeat then
    redis.call('HSET', order.consumers, order.heartbeat[1], order.heartbeat[2])
  end
  order.gone_members, order.empty_lanes, order.ticket_words, order.forgotten = {}, {}, {}, {}
  order.timeless, order.until_words, order.front, order.back, order.freed = {}, {}, {}, {}, {}
  order.settled, order.has_new_fence, order.heartbeat = {}, false, nil
end

-- A dead letter, and done.
local function bury(order, id, attempts, error_text, traceback)
  bury_entry(order.stream, order.group, order.dead, id, attempts, error_text, traceback)
  order.settled[#order.settled + 1] = id
end

-- The first `count` messages of a key are done and nobody holds it any more. The head has one ID more, if there is one.
local function go_on(order, key, head, count)
  local is_all = #head <= count
  lane_shift(order, key, head, count, is_all)
  if is_all then
    forget(order, key)
  else
    set_ready(order, key, 0, '', 'back')
  end
end

-- A message failed as often as it may.
local function poison(order, key, attempts, error_text)
  if order.poison ~= 'skip' then
    set_parked(order, key, attempts, error_text)
    return
  end
  local head = lane_head(order, key, 2)
  if #claim(order, LANES, {head[1]}, 'JUSTID') > 0 then
    bury(order, head[1], attempts, error_text, '')
  end
  go_on(order, key, head, 1)
end

local function is_exhausted(order, attempts)
  return order.max_attempts > 0 and attempts >= order.max_attempts
end

local function set_of(words)
  local set = {}
  for _, word in ipairs(words) do
    set[word] = true
  end
  return set
end

-- Take keys from their holders. Messages that were acknowledged by hand leave their lanes, and what follows them was
-- not tried yet. An attempt counts when its holder ended, and not when it gave the key back.
local function free_held(order, keys, tickets, is_counted)
  local given, heads = {}, {}
  for i, key in ipairs(keys) do
    heads[i] = lane_head(order, key, tickets[i].given + 1)
    for n = 1, math.min(#heads[i], tickets[i].given) do
      given[#given + 1] = heads[i][n]
    end
  end
  local is_pending = set_of(claim(order, LANES, given, 'JUSTID'))
  for i, key in ipairs(keys) do
    local head, attempts, gone = heads[i], tickets[i].attempts, 0
    while gone < math.min(#head, tickets[i].given) and not is_pending[head[gone + 1]] do
      gone = gone + 1
    end
    if gone == #head then
      lane_shift(order, key, head, gone, true)
      forget(order, key)
    elseif gone > 0 then
      lane_shift(order, key, head, gone, false)
      set_ready(order, key, 0, '', 'front')
    elseif not is_counted then
      if attempts > 1 then
        claim(order, LANES, {head[1]}, 'RETRYCOUNT', text_of(attempts - 1), 'JUSTID')
      end
      set_ready(order, key, math.max(attempts - 1, 0), '', 'front')
    elseif is_exhausted(order, attempts) then
      poison(order, key, attempts, ENDED)
    else
      set_ready(order, key, attempts, '', 'front')
    end
  end
end
