-- RQ.EXTEND: whoever has these elements still works on them; the time since their delivery begins anew.
--
-- KEYS   queue
-- ARGV   id…
-- reply  the IDs that are delivered; null without the queue

if #ARGV == 0 then
  return redis.error_reply("ERR wrong number of arguments for 'rq.extend' command")
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
return deliver_again(queue, delivered_among(queue, ids), 'JUSTID')
