-- What the steps of order per key share: the settings, the tickets, and how changes are written.
--
-- KEYS of every step: stream, tickets, ready, until, consumers, order, dead, lanes (client/lane_keys.py says what lies
-- there). An order is a table with these names, the settings and, while a step runs, what it is going to change: all
-- of it is written by `flush`, many keys with one command. Changes are read back only after a flush.
--
-- A ticket is text, its first word the state, its second the attempts begun on the first message so far:
--
--   ready A [error…]   held A fence until-ms given consumer…   waiting A until-ms [error…]   parked A since-ms [error…]

local LANES = 'lanes' -- Who has the entries in a lane that nobody holds.
local DEFAULT_LEASE_MS = 30000
local PART = 6000 -- Words handed to one command; Lua's stack takes about 8000.
local NO_LANES = 'NOLANES no order per key is set up for this group: LANE.CONFIG first'
local FENCED = 'FENCED this consumer has another session, or none: register again'
local OTHER_MAPS = 'MAPS the maps have other names: read the settings again'
local BAD_LEASE = 'ERR LEASE is not a positive number of milliseconds'
local ENDED = 'its consumers ended while they ran it'

local function text_of(number)
  return ('%.0f'):format(number)
end

-- Small numbers as text. Given to a command as a number, each would be printed as a double.
local SMALL = {}

local function small_text(number)
  local text = SMALL[number] or number .. ''
  if number <= 1000 then
    SMALL[number] = text
  end
  return text
end

-- Calling with many words

-- command key [more] word…, in parts of an even number of words.
local function call_with(words, command, key, more)
  for from = 1, #words, PART do
    local to = math.min(from + PART - 1, #words)
    if more then
      redis.call(command, key, more, unpack(words, from, to))
    else
      redis.call(command, key, unpack(words, from, to))
    end
  end
end

local function only_ids(words)
  local ids = {}
  for _, word in ipairs(words) do
    ids[#ids + 1] = #word <= 41 and word:find('^%d+%-%d+$') and word or nil
  end
  return ids
end

-- Where somebody put something else into a lane, XCLAIM refuses all of it: then again with the IDs alone.
local function claim_page(order, consumer, ids, options)
  local count = #ids
  for i, option in ipairs(options) do
    ids[count + i] = option
  end
  local reply = redis.pcall('XCLAIM', order.stream, order.group, consumer, 0, unpack(ids))
  if not reply.err then
    return reply
  end
  local left = only_ids({unpack(ids, 1, count)})
  if #left == count then
    return error(reply)
  end
  return #left > 0 and claim_page(order, consumer, left, options) or {}
end

-- Move entries to a consumer and set their number of deliveries; what came back: entries, or IDs with JUSTID. Those
-- that are not pending any more are missing; those that are gone from the stream are then no longer pending.
local function claim(order, consumer, ids, ...)
  local claimed = {}
  for from = 1, #ids, MOST do
    local reply = claim_page(order, consumer, {unpack(ids, from, math.min(from + MOST - 1, #ids))}, {...})
    if from == 1 and #ids <= MOST then
      return reply
    end
    for _, row in ipairs(reply) do
      claimed[#claimed + 1] = row
    end
  end
  return claimed
end

-- The settings

local function read_names(text)
  local names, at = {}, 1
  while at <= #text do
    local from, to, size = text:find('^(%d+):', at)
    if not from then
      break
    end
    names[#names + 1] = text:sub(to + 1, to + tonumber(size))
    at = to + 1 + tonumber(size)
  end
  return names
end

-- What is no number was written by somebody else.
local function saved_number(text, default)
  return text and whole_number(text, default and 1 or 0, 2 ^ 53) or default or 0
end

local function order_of(keys, group)
  return {
    stream = keys[1], tickets = keys[2], ready = keys[3], ['until'] = keys[4], consumers = keys[5], order = keys[6],
    dead = keys[7], lanes = keys[8], lane_start = keys[8]:sub(1, -2) .. ':', group = group, now = 0,
    ticket_words = {}, forgotten = {}, until_words = {}, timeless = {}, front = {}, back = {}, empty_lanes = {},
    gone_members = {}, new_members = {}, freed = {}, settled = {}, known = {}, whole = {},
  }
end

local function read_settings(order)
  local row = redis.pcall(
    'HMGET', order.order, 'keyfields', 'reader', 'poison', 'maxattempts', 'keyless', 'lease', 'layout', 'fence',
    'rebuild', 'tickets', 'consumers', 'looked'
  )
  if row.err or not row[1] then
    return row.err and row or nil
  end
  order.names, order.reader, order.poison = read_names(row[1]), row[2] or 'master', row[3]
  order.max_attempts, order.keyless, order.lease = saved_number(row[4]), row[5], saved_number(row[6], DEFAULT_LEASE_MS)
  order.is_set, order.fence = row[7] == 'set', saved_number(row[8])
  order.rebuild, order.saved_tickets, order.saved_consumers, order.looked = row[9], row[10], row[11], row[12]
  if order.rebuild and #only_ids({order.rebuild}) == 0 then
    order.rebuild = '0-0'
  end
  order.wanted = {}
  for _, name in ipairs(order.names) do
    order.wanted[name] = true
  end
  return row
end

-- An error when one of the keys is of another type; their sizes are kept.
local function read_sizes(order)
  local keys, ready = redis.pcall('HLEN', order.tickets), redis.pcall('LLEN', order.ready)
  local timed, consumers = redis.pcall('ZCARD', order['until']), redis.pcall('HLEN', order.consumers)
  order.sizes = {keys = keys, ready = ready, timed = timed, consumers = consumers}
  local lanes = order.is_set and redis.pcall('ZCARD', order.lanes) or 0
  for _, size in ipairs({keys, ready, timed, consumers, lanes}) do
    if type(size) == 'table' then
      return size
    end
  end
end

local function read_clock(order)
  local time = redis.call('TIME')
  order.micros = tonumber(time[1]) * 1000000 + tonumber(time[2])
  order.now = math.floor(order.micros / 1000)
end

-- The order of a step, and which entries its reader has (up to `most`); or an error.
local function open_order(keys, words, least, most)
  if #words < least then
    return nil, redis.error_reply('ERR wrong number of arguments')
  end
  local order = order_of(keys, words[1])
  local row = read_settings(order)
  if not row or row.err then
    return nil, row or redis.error_reply(NO_LANES)
  elseif order.saved_tickets ~= order.tickets or order.saved_consumers ~= order.consumers then
    return nil, redis.error_reply(OTHER_MAPS)
  end
  local strays = redis.pcall('XPENDING', order.stream, order.group, '-', '+', most or 1, order.reader)
  local wrong = strays.err and strays or read_sizes(order)
  if not wrong and (order.keyless ~= 'own' or order.poison ~= 'park') then
    wrong = find_wrong_target({[order.dead] = true})
  end
  order.strays = strays
  read_clock(order)
  return order, wrong
end

-- Numbers that grow with every grant, even when the server lost the last ones: they follow the clock.
local function next_fence(order)
  order.fence = math.max(order.fence + 1, order.micros)
  order.has_new_fence = true
  return order.fence
end

-- Consumers

-- Whether the consumer has this session; then its heartbeat is noted by `flush`.
local function has_session(order, consumer, session)
  local text = redis.call('HGET', order.consumers, consumer)
  local number, rest = (text or ''):match('^(%d+) %d+ (.*)$')
  if number ~= session then
    return false, text
  end
  order.heartbeat = {consumer, number .. ' ' .. text_of(order.now) .. ' ' .. rest}
  return true
end

-- Tickets

local FRESH = {state = 'ready', attempts = 0, error = ''}
local DAMAGED = {state = 'ready', attempts = 0, error = '', damaged = true} -- It may not be in the list `ready`.

-- Fence and lease of a held key stay text: they are compared and written again, nearly never counted with.
local function read_held(text)
  local attempts, fence, until_text, given, consumer = text:match('^held (%d+) (%d+) (%d+) (%d+) (.*)$')
  if attempts and #attempts <= 15 and #fence <= 16 and #until_text <= 16 and #given <= 4 and given ~= '0' then
    return {
      state = 'held', attempts = tonumber(attempts), fence = fence, until_text = until_text, given = tonumber(given),
      consumer = consumer, error = '',
    }
  end
  return DAMAGED
end

-- What is no ticket counts as ready, not tried.
local function read_ticket(text)
  if text:sub(1, 5) == 'held ' then
    return read_held(text)
  end
  local state, attempts, rest = text:match('^(%a+) (%d+) ?(.*)$')
  if state == 'ready' and #attempts <= 15 then
    return {state = 'ready', attempts = tonumber(attempts), error = rest}
  elseif (state == 'waiting' or state == 'parked') and #attempts <= 15 then
    local ms, error_text = rest:match('^(%d+) ?(.*)$')
    if ms and #ms <= 16 then
      return {state = state, attempts = tonumber(attempts), until_text = ms, error = error_text}
    end
  end
  return DAMAGED
end

-- The tickets of keys, in the same order; false where there is none.
local function read_tickets(order, keys)
  local tickets = {}
  for from = 1, #keys, PART do
    local rows = redis.call('HMGET', order.tickets, unpack(keys, from, math.min(from + PART - 1, #keys)))
    for i = 1, #rows do
      tickets[from + i - 1] = rows[i] and read_ticket(rows[i])
    end
  end
  return tickets
end

local function set_ticket(order, key, text)
  local words = order.ticket_words
  words[#words + 1] = key
  words[#words + 1] = text
end

local function with_error(text, error_text)
  return error_text ~= '' and text .. ' ' .. error_text or text
end

local function set_ready(order, key, attempts, error_text, place)
  set_ticket(order, key, with_error('ready ' .. text_of(attempts), error_text))
  order.timeless[#order.timeless + 1] = key
  order[place][#order[place] + 1] = key
end

local function set_timed(order, key, ms_text)
  local words = order.until_words
  words[#words + 1] = ms_text
  words[#words + 1] = key
end

local function set_held(order, key, attempts, fence, until_text, given, consumer)
  attempts, given = small_text(attempts), small_text(given)
  set_ticket(order, key, 'held ' .. attempts .. ' ' .. fence .. ' ' .. until_text .. ' ' .. given .. ' ' .. consumer)
end

local function set_waiting(order, key, attempts, ms, error_text)
  set_ticket(order, key, with_error('waiting ' .. text_of(attempts) .. ' ' .. text_of(ms), error_text))
  set_timed(order, key, text_of(ms))
end

local function set_parked(order, key, attempts, error_text)
  set_ticket(order, key, with_error('parked ' .. text_of(attempts) .. ' ' .. text_of(order.now), error_text))
  order.timeless[#order.timeless + 1] = key
end

local function forget(order, key)
  order.forgotten[#order.forgotten + 1] = key
  order.timeless[#order.timeless + 1] = key
end
