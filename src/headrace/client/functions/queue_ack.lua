-- RQ.ACK: elements are done with, and go.
--
-- KEYS   queue
-- ARGV   id…
-- reply  the IDs that were delivered until now; null without the queue

if #ARGV == 0 then
  return redis.error_reply("ERR wrong number of arguments for 'rq.ack' command")
end
local ids, problem = read_ids(ARGV)
if problem then
  return problem
end
local queue
queue, problem = open_queue(KEYS[1])
if not queue then
  return problem or false
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
