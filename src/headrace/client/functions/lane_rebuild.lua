-- LANE.REBUILD: all lanes anew from what is pending in the group. Holders are fenced, parked keys go on.
--
-- ARGV   group
-- reply  OK
--
-- This is the first page; LANE.TAKE goes on.

local order, wrong = open_order(KEYS, ARGV, 1)
if wrong then
  return wrong
elseif #ARGV > 1 then
  return redis.error_reply(SYNTAX)
end
begin_rebuild(order)
rebuild_page(order)
return redis.status_reply('OK')
