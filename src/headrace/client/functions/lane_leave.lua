-- LANE.LEAVE: the end of a session. Keys that the consumer holds are free at once; the attempt does not count.
--
-- ARGV   group, consumer, session
-- reply  how many keys were given back

local order, wrong = open_order(KEYS, ARGV, 3)
if wrong then
  return wrong
end
local consumer = ARGV[2]
local is_ours, other = has_session(order, consumer, ARGV[3])
if #ARGV > 3 then
  return redis.error_reply(SYNTAX)
elseif not is_ours then
  return other and redis.error_reply(FENCED) or 0
end
local keys, tickets = find_held(order, consumer)
free_held(order, keys, tickets, false)
order.heartbeat = nil
flush(order)
redis.call('HDEL', order.consumers, consumer)
if #redis.call('XPENDING', order.stream, order.group, '-', '+', 1, consumer) == 0 then
  redis.call('XGROUP', 'DELCONSUMER', order.stream, order.group, consumer)
end
return #keys
