-- RQ.ACK: elements are done with, and go.
--
-- KEYS   queue
-- ARGV   id…
-- reply  the IDs that were delivered until now; null without the queue

local queue, ids, instead = open_with_ids(KEYS[1], ARGV, 'rq.ack')
if instead ~= nil then
  return instead
end
local _, back = count_pending(queue)
if back > 0 then
  ids = delivered_among(queue, ids)
end
local acknowledged = {}
for _, id in ipairs(ids) do
  if redis.call('XACK', queue.key, GROUP, id) == 1 then
    acknowledged[#acknowledged + 1] = id
  end
end
if #acknowledged > 0 then
  redis.call('XDEL', queue.key, unpack(acknowledged))
end
return acknowledged
