-- What the steps of reliable queues share: where a queue keeps what.
--
-- A queue is one stream, and a group named hr:queue tells it from other streams. Each element is an entry; its body is
-- the value of the first field. An acknowledged one is deleted, so what is left is one of these:
--
--   undelivered   behind the group's last ID; before them those pending with the consumer 'back', which were given back
--   delivered     pending with a consumer '1', '2', … : its pile
--
-- Delivered elements are wanted by the time of their last delivery, but what a consumer has pending is in the order of
-- IDs. So an element goes to the first pile that holds no higher ID: within a pile both orders are then the same, and
-- the oldest delivery of all is at the head of a pile. Deliveries of one millisecond keep their order because the
-- next one goes to the same pile or a later one.
--
-- The last ID of three more groups holds two numbers each. A group is made when its numbers are first needed:
--
--   hr:queue:last     time in ms and pile of the last delivery to another pile than the first
--   hr:queue:counts   elements given back, elements delivered again
--   hr:queue:paused   1 or 0 for each: takes no elements in, gives none out

local GROUP = 'hr:queue'
local LAST, COUNTS, PAUSED = GROUP .. ':last', GROUP .. ':counts', GROUP .. ':paused'
local BACK, MOVING = 'back', 'moving'
local MOST = 1000 -- Elements in one call, so that none keeps the server for long. Lua's stack takes about 8000 words.
local PILES = 512 -- With more, the order in the last pile is that of IDs.
local CLOCK_READS = 10
local LATE_MS = 1000 -- A last delivery that lies further ahead was before the clock went back.
local LARGEST = '9223372036854775807'
local WRONG_TYPE = 'WRONGTYPE Operation against a key holding the wrong kind of value'
local EMPTY_KEY = 'EMPTYKEY There is no queue at this key'
local NOT_AN_INTEGER = 'ERR value is not an integer or out of range'
local TAKES_NOTHING = 'PAUSED The queue takes no new elements until RQ.PAUSE lets them in again.'

local function two_numbers(id)
  local first, second = id:match('^(%d+)%-(%d+)$')
  return tonumber(first), tonumber(second)
end

-- The queue with what its groups tell. Nil: there is no such key. An error: it is something else.
local function open_queue(key)
  local groups = redis.pcall('XINFO', 'GROUPS', key)
  if groups.err then
    return nil, not groups.err:find('no such key', 1, true) and groups or nil
  end
  local queue = {key = key, numbers = {}}
  for _, row in ipairs(groups) do
    local facts = {}
    for i = 1, #row, 2 do
      facts[row[i]] = row[i + 1]
    end
    if facts.name == GROUP then
      queue.last_id = facts['last-delivered-id']
    else
      queue.numbers[facts.name] = facts['last-delivered-id']
    end
  end
  if not queue.last_id then
    return nil, redis.error_reply(WRONG_TYPE)
  end
  return queue
end

local function numbers_of(queue, name)
  return two_numbers(queue.numbers[name] or '0-0')
end

local function keep_numbers(queue, name, first, second)
  local id = ('%.0f-%.0f'):format(first, second)
  redis.call('XGROUP', queue.numbers[name] and 'SETID' or 'CREATE', queue.key, name, id)
  queue.numbers[name] = id
end

local function count_more(queue, nacks, redeliveries)
  if nacks + redeliveries > 0 then
    local nacks_before, redeliveries_before = numbers_of(queue, COUNTS)
    keep_numbers(queue, COUNTS, nacks_before + nacks, redeliveries_before + redeliveries)
  end
end

-- The ID of the last element that was ever pushed.
local function last_pushed(queue)
  local facts = redis.call('XINFO', 'STREAM', queue.key)
  for i = 1, #facts, 2 do
    if facts[i] == 'last-generated-id' then
      return facts[i + 1]
    end
  end
end

local function now_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- Arguments

-- An integer of 64 bits, as a number; nil: it is none. Beyond 2^53 it is not exact, and need not be.
local function integer(text)
  local digits = text:match('^%-?([1-9]%d*)$') or text:match('^0$')
  if not digits or #digits > 19 or (#digits == 19 and digits > LARGEST) then
    return nil
  end
  return tonumber(text)
end

local function plain_id(id)
  if #id <= 20 and (id:find('^[1-9]%d*%-[1-9]%d*$') or id:find('^[1-9]%d*%-0$')) then
    return id -- As the server wrote it, which is nearly always so.
  elseif not order_of(id) then
    return nil
  end
  local first, second = (id:find('-', 1, true) and id or id .. '-0'):match('^0*(%d+)%-0*(%d+)$')
  return first .. '-' .. second
end

-- These IDs, each once and in full; or an error. All are checked before anything changes.
local function read_ids(words)
  local ids, seen = {}, {}
  if #words > MOST then
    return nil, redis.error_reply('ERR at most ' .. MOST .. ' elements in one call on this server')
  end
  for _, word in ipairs(words) do
    local id = plain_id(word)
    if not id then
      return nil, redis.error_reply('ERR Invalid stream ID specified as stream command argument')
    end
    if not seen[id] then
      ids[#ids + 1] = id
      seen[id] = true
    end
  end
  return ids
end

-- The queue and these IDs of it, for ACK, NACK and EXTEND; or what to reply instead. Null: there is no such queue.
local function open_with_ids(key, words, command)
  if #words == 0 then
    return nil, nil, redis.error_reply("ERR wrong number of arguments for '" .. command .. "' command")
  end
  local queue, problem = open_queue(key)
  if problem then
    return nil, nil, problem
  end
  local ids
  ids, problem = read_ids(words)
  if problem or not queue then
    return nil, nil, problem or false
  end
  return queue, ids
end

-- Append elements to a queue, which is made where it is missing; their IDs.
local function push(key, elements)
  if #elements > MOST then
    return redis.error_reply('ERR at most ' .. MOST .. ' elements in one call on this server')
  end
  local queue, problem = open_queue(key)
  if problem then
    return problem
  elseif not queue then
    redis.call('XGROUP', 'CREATE', key, GROUP, '0', 'MKSTREAM')
  elseif numbers_of(queue, PAUSED) == 1 then
    return redis.error_reply(TAKES_NOTHING)
  end
  local ids = {}
  for i, element in ipairs(elements) do
    ids[i] = redis.call('XADD', key, '*', 'body', element)
  end
  return ids
end

-- Elements

-- The body is false when the entry is gone, which only XDEL and XTRIM of others bring about.
local function body_of(queue, id)
  local entry = redis.call('XRANGE', queue.key, id, id)[1]
  return entry and entry[2][2] or false
end

-- Of these IDs the ones that are delivered and neither acknowledged nor given back.
local function delivered_among(queue, ids)
  local found = {}
  for _, id in ipairs(ids) do
    local row = redis.call('XPENDING', queue.key, GROUP, id, id, 1)[1]
    if row and row[2] ~= BACK then
      found[#found + 1] = id
    end
  end
  return found
end

-- How many are delivered and how many of the undelivered ones were given back; and the piles, in their order.
local function count_pending(queue)
  local delivered, back, piles = 0, 0, {}
  for _, row in ipairs(redis.call('XPENDING', queue.key, GROUP)[4] or {}) do
    local size = tonumber(row[2])
    if row[1] == BACK then
      back = size
    else
      delivered = delivered + size
      piles[#piles + 1] = {name = row[1], number = tonumber(row[1]) or PILES + 1}
    end
  end
  table.sort(piles, function(one, other) return one.number < other.number end)
  return delivered, back, piles
end

-- Others may have deleted entries that are pending still: then it is not exact, but never below zero.
local function count_undelivered(queue, delivered)
  return math.max(0, redis.call('XLEN', queue.key) - delivered)
end

-- Elements of a pile from an ID on: [id, pile, ms since the delivery, deliveries], and when that was as `ms`. Redis 7.0
-- lets its clock run on during a call: there it is read again until all of it is from one millisecond.
local function read_pile(queue, pile, from, page)
  local before, rows
  for _ = 1, CLOCK_READS do
    before = now_ms()
    rows = redis.call('XPENDING', queue.key, GROUP, from, '+', page, pile)
    if now_ms() == before then
      break
    end
  end
  for _, row in ipairs(rows) do
    row.ms = before - row[3]
  end
  return rows
end

-- Gives the delivered elements one by one, the oldest delivery first, as read_pile gives them.
local function by_delivery(queue, page)
  local _, _, piles = count_pending(queue)
  for _, pile in ipairs(piles) do
    pile.rows, pile.at, pile.from = {}, 1, '-'
  end
  return function()
    local oldest
    for _, pile in ipairs(piles) do
      if pile.at > #pile.rows and pile.from then
        pile.rows = read_pile(queue, pile.name, pile.from, page)
        pile.at, pile.from = 1, #pile.rows == page and '(' .. pile.rows[page][1] or nil
      end
      local row = pile.rows[pile.at]
      if row and (not oldest or row.ms < oldest.rows[oldest.at].ms) then
        oldest = pile
      end
    end
    if oldest then
      oldest.at = oldest.at + 1
      return oldest.rows[oldest.at - 1]
    end
  end
end

-- The first pile that a delivery of this moment may go to. A clock that went back is not waited for.
local function first_pile(queue)
  local last_ms, pile = numbers_of(queue, LAST)
  local ahead_ms = last_ms - now_ms()
  return ahead_ms >= 0 and ahead_ms < LATE_MS and pile or 1
end

-- Remembered only where it matters: in the first pile nothing can be out of order.
local function remember_pile(queue, pile)
  if pile > 1 then
    keep_numbers(queue, LAST, now_ms(), pile)
  end
end

-- Only who has them changes. The IDs; those whose entry is gone are dropped: XCLAIM does so.
local function hand_over(queue, ids, consumer)
  local words = {'XCLAIM', queue.key, GROUP, consumer, 0, unpack(ids)}
  words[#words + 1] = 'JUSTID'
  return #ids > 0 and redis.call(unpack(words)) or {}
end

-- Put pending elements behind all delivered ones, in this order, delivered now. The entries; with 'JUSTID' the IDs only,
-- and they do not count as delivered once more.
local function deliver_again(queue, ids, just_id)
  if #ids == 0 then
    return ids
  end
  ids = hand_over(queue, ids, MOVING) -- Out of their piles first.
  local pile, part, results = first_pile(queue), {}, {}
  local function place_part()
    local words = {'XCLAIM', queue.key, GROUP, pile, 0, unpack(part)}
    words[#words + 1] = just_id
    for _, result in ipairs(#part > 0 and redis.call(unpack(words)) or {}) do
      results[#results + 1] = result
    end
    part = {}
  end
  local last_order = ''
  for _, id in ipairs(ids) do
    local order = order_of(id)
    if #part == 0 or order < last_order then
      place_part()
      while pile < PILES and #redis.call('XPENDING', queue.key, GROUP, '(' .. id, '+', 1, pile) > 0 do
        pile = pile + 1
      end
    end
    part[#part + 1], last_order = id, order
  end
  place_part()
  remember_pile(queue, pile)
  return results
end
