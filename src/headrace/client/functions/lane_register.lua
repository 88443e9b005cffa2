-- LANE.REGISTER: a new session of a consumer. Keys that the name holds already are free at once.
--
-- ARGV   group, consumer, CAPACITY n or nothing, HEALTH url or nothing
-- reply  session, lease in ms

local order, wrong = open_order(KEYS, ARGV, 2)
if wrong then
  return wrong
end
local consumer, capacity, health = ARGV[2], 1, ''
local is_given = {}
for at = 3, #ARGV, 2 do
  local word, value = ARGV[at]:upper(), ARGV[at + 1]
  if not value or is_given[word] then
    return redis.error_reply(SYNTAX)
  elseif word == 'HEALTH' then
    health = value
  elseif word == 'CAPACITY' then
    capacity = whole_number(value, 1, 1000000)
    if not capacity then
      return redis.error_reply('ERR CAPACITY must be from 1 to 1000000')
    end
  else
    return redis.error_reply(SYNTAX)
  end
  is_given[word] = true
end
if consumer == '' or consumer == LANES or consumer == order.reader then
  return redis.error_reply('ERR this name is not for consumers: choose another')
end

local keys, tickets = find_held(order, consumer)
free_held(order, keys, tickets, true)
local session = next_fence(order)
order.heartbeat = {consumer, table.concat({text_of(session), text_of(order.now), text_of(capacity), health}, ' ')}
flush(order)
return {session, order.lease}
