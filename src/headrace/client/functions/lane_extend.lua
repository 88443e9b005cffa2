-- LANE.EXTEND: a consumer still works on its keys.
--
-- ARGV   group, consumer, session, LEASE, ms, ONLY or nothing, n, then n times key and fence
-- reply  per key 1, or 0 when the consumer does not hold it under that fence
--
-- Messages at the head that were acknowledged by hand leave their lane. With ONLY, every other key that the consumer
-- holds is given back.

local BAD_COUNT = 'ERR the number of keys must be from 0 to 1000, with a key and its fence for each'

local order, wrong = open_order(KEYS, ARGV, 6)
if wrong then
  return wrong
end
local consumer, lease = ARGV[2], whole_number(ARGV[5], 1, 2 ^ 52)
local is_only = ARGV[6]:upper() == 'ONLY'
local at = is_only and 7 or 6
local count = ARGV[at] and whole_number(ARGV[at], 0, MOST)
if ARGV[4]:upper() ~= 'LEASE' or (lease and not ARGV[at]) then
  return redis.error_reply(SYNTAX)
elseif not lease then
  return redis.error_reply(BAD_LEASE)
elseif not count or #ARGV ~= at + 2 * count then
  return redis.error_reply(BAD_COUNT)
elseif not has_session(order, consumer, ARGV[3]) then
  return redis.error_reply(FENCED)
end
local keys, fences = {}, {}
for i = 1, count do
  keys[i] = ARGV[at + 2 * i - 1]
  fences[i] = ARGV[at + 2 * i]
end

local tickets, heads, given = read_tickets(order, keys), {}, {}
for i, key in ipairs(keys) do
  local ticket = tickets[i]
  if ticket and ticket.state == 'held' and ticket.fence == fences[i] and ticket.consumer == consumer then
    heads[i] = lane_head(order, key, ticket.given + 1)
    for n = 1, math.min(#heads[i], ticket.given) do
      given[#given + 1] = heads[i][n]
    end
  end
end

-- Which of them are pending. Nearly all are, with this consumer.
local is_pending = {}
if #given > 0 then
  local _, low, high = read_ids(given, 1, #given)
  is_pending = find_pending(order.stream, order.group, consumer, low, high)
end
local function is_there(id)
  return is_pending[id] or #redis.call('XPENDING', order.stream, order.group, id, id, 1) > 0
end

local reply, is_kept, until_text = {}, {}, text_of(order.now + lease)
for i, key in ipairs(keys) do
  local head, ticket, gone = heads[i], tickets[i], 0
  reply[i] = head and 1 or 0
  while head and gone < math.min(ticket.given, #head) and not is_there(head[gone + 1]) do
    gone = gone + 1
  end
  if head and (gone == ticket.given or gone == #head) then
    go_on(order, key, head, gone)
    reply[i] = 0
  elseif head then
    lane_shift(order, key, head, gone, false)
    set_held(order, key, gone > 0 and 1 or ticket.attempts, ticket.fence, until_text, ticket.given - gone, consumer)
    set_timed(order, key, until_text)
  end
  is_kept[key] = is_kept[key] or head ~= nil
end
flush(order)

if is_only then
  local held, held_tickets = find_held(order, consumer)
  local others, other_tickets = {}, {}
  for i, key in ipairs(held) do
    if not is_kept[key] then
      others[#others + 1], other_tickets[#other_tickets + 1] = key, held_tickets[i]
    end
  end
  free_held(order, others, other_tickets, false)
  flush(order)
end
return reply
