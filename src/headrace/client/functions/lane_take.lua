-- LANE.TAKE: keys that nobody holds, with their first messages.
--
-- ARGV   group, consumer, session, LEASE, ms, KEYS, n, RUN, m[, LIMIT, l]
-- reply  [[key, fence, attempt, last error, [[id, fields]…]]…], and ms to wait: 0 there may be more, -1 nothing known
--
-- In this order: a page of a rebuild that is under way; keys whose lease or pause has ended; entries that were read and
-- are in no lane yet; keys from `ready`, and when those are too few, new entries. New entries are read by the consumer
-- itself, because most of them stay with it; the others go to their lanes' keeper at the end.

local MOST_ENTRIES = 1000 -- In one reply, and read in one call.
local SLOW_PAGES = 10 -- Of a lane whose messages are gone, looked at in one call.

local order, wrong = open_order(KEYS, ARGV, 9, PAGE)
if wrong then
  return wrong
end
local consumer, session, lease = ARGV[2], ARGV[3], whole_number(ARGV[5], 1, 2 ^ 52)
if ARGV[4]:upper() ~= 'LEASE' or ARGV[6]:upper() ~= 'KEYS' or ARGV[8]:upper() ~= 'RUN' then
  return redis.error_reply(SYNTAX)
elseif not lease then
  return redis.error_reply(BAD_LEASE)
end
for at = 6, #ARGV, 2 do
  if at > 8 and (at > 10 or #ARGV ~= 11 or ARGV[10]:upper() ~= 'LIMIT') then
    return redis.error_reply(SYNTAX)
  elseif not whole_number(ARGV[at + 1], 1, 1000) then
    return redis.error_reply('ERR ' .. ARGV[at]:upper() .. ' must be from 1 to 1000')
  end
end
local wanted, run, limit = tonumber(ARGV[7]), tonumber(ARGV[9]), ARGV[11] and tonumber(ARGV[11])
if not has_session(order, consumer, session) then
  return redis.error_reply(FENCED)
elseif order.rebuild then
  rebuild_page(order)
  return {{}, 0}
end

local has_more = #order.strays == PAGE
local may_read = not has_more

-- Keys whose time has come: to the front, the earliest first.
local function expire()
  local keys = redis.call('ZRANGEBYSCORE', order['until'], '-inf', text_of(order.now), 'LIMIT', 0, PAGE)
  if #keys == 0 then
    return
  end
  has_more = has_more or #keys == PAGE
  local held, held_tickets, others = {}, {}, {}
  for i, ticket in ipairs(read_tickets(order, keys)) do
    local key = keys[i]
    if ticket and ticket.state == 'held' then
      held[#held + 1], held_tickets[#held_tickets + 1] = key, ticket
    elseif ticket and ticket.state == 'waiting' and is_exhausted(order, ticket.attempts) then
      poison(order, key, ticket.attempts, ticket.error)
    elseif ticket and (ticket.state == 'waiting' or ticket.damaged) then
      set_ready(order, key, ticket.attempts, ticket.error, 'front')
    else
      others[#others + 1] = key
    end
  end
  free_held(order, held, held_tickets, true)
  call_with(others, 'ZREM', order['until'])
  local place = {}
  for i, key in ipairs(keys) do
    place[key] = i
  end
  table.sort(order.front, function(one, other)
    return place[one] < place[other]
  end)
end

expire()
if limit then -- What its consumer holds counts: others may have taken for it.
  local held = #redis.call('XPENDING', order.stream, order.group, '-', '+', limit, consumer)
  wanted = math.min(wanted, limit - held)
end
ingest_strays(order)
if #order.timeless > 0 or #order.settled > 0 then
  flush(order)
end

-- Choosing keys

local chosen, is_chosen = {}, {} -- Keys in the order they are given out.
local last_read, is_exhausted_stream, read_count = nil, false, 0
order.is_loose = {} -- IDs that were read and not given out yet.
local bodies = {}

local function choose(key, ticket)
  if not is_chosen[key] then
    is_chosen[key] = true
    chosen[#chosen + 1] = {key = key, attempts = ticket.attempts, error = ticket.error}
  end
end

local function choose_ready()
  while #chosen < wanted do
    local keys = redis.call('LPOP', order.ready, wanted - #chosen)
    if not keys then
      return
    end
    for i, ticket in ipairs(read_tickets(order, keys)) do
      if ticket and ticket.state == 'ready' then
        order.known[keys[i]] = ticket
        choose(keys[i], ticket)
      end
    end
  end
end

-- New entries into their lanes; keys that had no ticket are chosen. What is going to stay in its lane is read by the
-- lanes' keeper at once: XCLAIM costs more than all the rest (bench/lanes.py).
local function read_new(count, reader)
  local reply = redis.call('XREADGROUP', 'GROUP', order.group, reader, 'COUNT', count, 'STREAMS', order.stream, '>')
  local entries = reply and reply[1][2] or {}
  if reader == consumer then
    for _, entry in ipairs(entries) do
      bodies[entry[1]], order.is_loose[entry[1]] = entry, true
    end
  end
  for _, key in ipairs(ingest(order, entries)) do
    choose(key, order.known[key])
  end
  read_count = read_count + #entries
  is_exhausted_stream = #entries < count
  last_read = #entries > 0 and entries[#entries][1] or last_read
end

-- How many of the next entries belong to keys that have a ticket.
local function peek(count)
  local entries, keys, known = redis.call('XRANGE', order.stream, '(' .. last_read, '+', 'COUNT', count), {}, 0
  for i, entry in ipairs(entries) do
    keys[i] = key_of(order, entry[2])
    if not keys[i] then
      break
    end
  end
  learn_tickets(order, keys)
  for _, key in ipairs(keys) do
    if not order.known[key] or order.known[key].damaged then
      break
    end
    known = known + 1
  end
  return known
end

choose_ready()
local ahead = 1 -- Entries looked at in advance where those read brought no new key: twice as many each time.
while may_read and #chosen < wanted and not is_exhausted_stream and read_count < MOST_ENTRIES do
  local before = #chosen
  read_new(math.min(wanted - #chosen, MOST_ENTRIES - read_count), consumer)
  if #chosen == before and not is_exhausted_stream and read_count < MOST_ENTRIES then
    ahead = math.min(2 * ahead, MOST_ENTRIES - read_count)
    local known = peek(ahead)
    if known > 0 then
      read_new(known, LANES)
    end
  end
end

-- Filling runs: as long as the next new entries belong to keys that have a ticket, they are read too. So runs of busy
-- keys grow, and no key is left in `ready` that somebody who waits would not see.

local total = 0 -- Messages that will be given out.

local function look_up(choice)
  choice.ids = order.whole[choice.key] or lane_head(order, choice.key, run)
  local size = math.min(#choice.ids, run)
  total = total + size - (choice.size or 0)
  choice.size = size
end

local function last_delivered()
  for _, row in ipairs(redis.call('XINFO', 'GROUPS', order.stream)) do
    local last, is_ours
    for i = 1, #row, 2 do
      is_ours = is_ours or (row[i] == 'name' and row[i + 1] == order.group)
      last = row[i] == 'last-delivered-id' and row[i + 1] or last
    end
    if is_ours then
      return last
    end
  end
end

for _, choice in ipairs(chosen) do
  look_up(choice)
end
local function fill()
  local full = math.min(run * #chosen, MOST_ENTRIES)
  last_read = last_read or last_delivered()
  local count = 1
  while total < full and read_count < MOST_ENTRIES do
    count = math.min(count, MOST_ENTRIES - read_count)
    local known = peek(count)
    if known > 0 then
      read_new(known, consumer)
      for _, choice in ipairs(chosen) do
        if choice.size < run then
          look_up(choice)
        end
      end
    end
    if known < count then
      return
    end
    count = count * 2
  end
end
if run > 1 and may_read and #chosen > 0 and not is_exhausted_stream then
  fill()
end

-- Giving out

-- Each choice's first IDs, as many as the reply has room for; what has none goes back to the front.
local function cut_runs()
  local granted, room = {}, MOST_ENTRIES
  for _, choice in ipairs(chosen) do
    local count = math.min(#choice.ids, run, room)
    if room == 0 then
      set_ready(order, choice.key, choice.attempts, choice.error, 'front')
    else
      choice.count = count
      granted[#granted + 1] = choice
      room = room - count
    end
  end
  return granted
end

-- Move what was not read by this call to the consumer; IDs of one number of deliveries with one command.
local function claim_runs(granted)
  local by_count, counts = {}, {}
  for _, choice in ipairs(granted) do
    for i = 1, choice.count do
      local id = choice.ids[i]
      local count = i == 1 and choice.attempts + 1 or 1
      if not (bodies[id] and count == 1) then
        if not by_count[count] then
          by_count[count] = {}
          counts[#counts + 1] = count
        end
        by_count[count][#by_count[count] + 1] = id
        bodies[id] = nil
      end
    end
  end
  for _, count in ipairs(counts) do
    for _, entry in ipairs(claim(order, consumer, by_count[count], 'RETRYCOUNT', text_of(count))) do
      bodies[entry[1]] = entry
    end
  end
end

local function entries_of(choice)
  local entries = {}
  for i = 1, choice.count do
    local entry = bodies[choice.ids[i]]
    if not entry then
      return nil
    end
    entries[i] = entry
  end
  return entries
end

-- A lane with messages that are gone: they leave it, and what was behind them comes forward. Nil: nothing is left, or
-- too much was gone for one call.
local function clear_lane(choice)
  local key, first, room = choice.key, choice.ids[1], math.max(choice.count, 1)
  for _ = 1, SLOW_PAGES do
    local head = lane_head(order, key, PAGE)
    if #head == 0 then
      forget(order, key)
      return nil
    end
    local is_pending, is_gone, alive = set_of(claim(order, LANES, head, 'JUSTID')), {}, {}
    for _, id in ipairs(head) do
      is_gone[id] = not is_pending[id]
      alive[#alive + 1] = is_pending[id] and id or nil
      order.is_loose[id], bodies[id] = nil, nil
    end
    lane_remove(order, key, head, is_gone)
    if #alive > 0 then
      if alive[1] ~= first then
        choice.attempts, choice.error = 0, ''
      end
      choice.ids, choice.count = alive, math.min(#alive, room)
      claim_runs({choice})
      return entries_of(choice)
    end
  end
  set_ready(order, key, 0, '', 'front')
  return nil
end

local granted, rows = cut_runs(), {}
claim_runs(granted)
local until_text = text_of(order.now + lease)
for _, choice in ipairs(granted) do
  local entries = choice.count > 0 and entries_of(choice) or clear_lane(choice)
  if entries then
    local fence, attempt = next_fence(order), choice.attempts + 1
    for _, entry in ipairs(entries) do
      order.is_loose[entry[1]] = nil
    end
    set_held(order, choice.key, attempt, text_of(fence), until_text, #entries, consumer)
    set_timed(order, choice.key, until_text)
    rows[#rows + 1] = {choice.key, fence, attempt, choice.error, entries}
  end
end
for id in pairs(order.is_loose) do
  order.freed[#order.freed + 1] = id
end
flush(order)

has_more = has_more or #chosen >= wanted or not is_exhausted_stream or redis.call('LLEN', order.ready) > 0
if has_more or mend(order) then
  return {rows, 0}
end
local first = redis.call('ZRANGE', order['until'], 0, 0, 'WITHSCORES')[2]
return {rows, first and math.max(1, math.ceil(tonumber(first) - order.now)) or -1}
