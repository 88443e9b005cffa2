-- LANE.PARK: a key stands still until it is resumed. Its holder, if there is one, is fenced.
--
-- ARGV   group, key, ERROR text or nothing
-- reply  1, or 0 when the key has nothing undone

local order, wrong = open_order(KEYS, ARGV, 2)
if wrong then
  return wrong
elseif #ARGV ~= 2 and not (#ARGV == 4 and ARGV[3]:upper() == 'ERROR') then
  return redis.error_reply(SYNTAX)
end
local key = ARGV[2]
local ticket = read_tickets(order, {key})[1]
if not ticket then
  return 0
elseif ticket.state == 'held' then
  order.freed = lane_head(order, key, ticket.given)
elseif ticket.state == 'ready' then
  redis.call('LREM', order.ready, 0, key)
end
set_parked(order, key, ticket.attempts, ARGV[4] or ticket.error)
flush(order)
return 1
