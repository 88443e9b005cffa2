-- RQ.INSPECT: look at elements; nothing changes.
--
-- KEYS   queue
-- ARGV   [PENDING | DELAYED] start, count
-- reply  [id, body] for each undelivered one; with PENDING [id, body, last delivery in unix ms, ms since, deliveries];
--        with DELAYED none, as nothing can be delayed here
--
-- A negative start counts from the end. What lies before the start has to be walked past, so there is a limit to it.

local DEEPEST = 100000

if #ARGV < 2 then
  return redis.error_reply("ERR wrong number of arguments for 'rq.inspect' command")
end
local view = #ARGV == 3 and ARGV[1]:upper()
local is_pending = view == 'PENDING'
if #ARGV > 2 and not is_pending and view ~= 'DELAYED' then
  return redis.error_reply('ERR syntax error')
end
local start, count = integer(ARGV[#ARGV - 1]), integer(ARGV[#ARGV])
if not start or not count then
  return redis.error_reply(NOT_AN_INTEGER)
elseif count < 1 then
  return redis.error_reply('ERR count must be 1 or more')
end
local queue, problem = open_queue(KEYS[1])
if not queue then
  return problem or redis.error_reply(EMPTY_KEY)
end
count = math.min(count, MOST)

local key = queue.key
local delivered, back = count_pending(queue)
local undelivered = count_undelivered(queue, delivered)
local total = view == 'DELAYED' and 0 or is_pending and delivered or undelivered
start = start < 0 and total + start or start
if start < 0 or start >= total then
  return {}
end
count = math.min(count, total - start)
if start + count > DEEPEST and (is_pending or total - start > DEEPEST) then
  return redis.error_reply('ERR RQ.INSPECT looks at most ' .. DEEPEST .. ' elements deep on this server')
end

local reply = {}

local function show_pending()
  local next_element = by_delivery(queue, math.min(start + count, MOST))
  for place = 0, start + count - 1 do
    local row = next_element()
    if not row then
      return
    end
    local body = place >= start and body_of(queue, row[1])
    if body then
      reply[#reply + 1] = {row[1], body, row.ms, row[3], row[4]}
    end
  end
end

local function show_given_back()
  local rows = start < back and redis.call('XPENDING', key, GROUP, '-', '+', start + count, BACK) or {}
  for place = start + 1, #rows do
    local body = body_of(queue, rows[place][1])
    if body then
      reply[#reply + 1] = {rows[place][1], body}
    end
  end
end

-- Entries behind the last ID, from a place on, as many as there is room for.
local function show_new(place, most)
  local from = '(' .. queue.last_id
  while most > 0 do
    local page = redis.call('XRANGE', key, from, '+', 'COUNT', math.min(place + most, MOST))
    for i = place + 1, math.min(#page, place + most) do
      reply[#reply + 1] = {page[i][1], page[i][2][2]}
    end
    if #page == 0 then
      return
    end
    most = most - math.max(0, math.min(#page, place + most) - place)
    place = math.max(0, place - #page)
    from = '(' .. page[#page][1]
  end
end

-- The same from the end: the entries before the last `past` ones.
local function show_new_from_end(past, most)
  local to, found = '+', {}
  while most > 0 do
    local page = redis.call('XREVRANGE', key, to, '(' .. queue.last_id, 'COUNT', math.min(past + most, MOST))
    for i = past + 1, math.min(#page, past + most) do
      found[#found + 1] = {page[i][1], page[i][2][2]}
    end
    if #page == 0 then
      break
    end
    most = most - math.max(0, math.min(#page, past + most) - past)
    past = math.max(0, past - #page)
    to = '(' .. page[#page][1]
  end
  for i = #found, 1, -1 do
    reply[#reply + 1] = found[i]
  end
end

if is_pending then
  show_pending()
  return reply
end
show_given_back()
local place = math.max(0, start - back) -- Among those that were never delivered.
local most = math.min(count - #reply, undelivered - back - place)
local past = undelivered - back - place - most
if place <= past then
  show_new(place, most)
else
  show_new_from_end(past, most)
end
return reply
