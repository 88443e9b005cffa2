-- RQ.NACK: give delivered elements back. They are the next ones to be popped, in the order they were pushed.
--
-- KEYS   queue
-- ARGV   id…
-- reply  the IDs that were delivered until now; null without the queue

if #ARGV == 0 then
  return redis.error_reply("ERR wrong number of arguments for 'rq.nack' command")
elseif ARGV[1]:upper() == 'DELAY' then
  return redis.error_reply('ERR DELAY is not possible on this server: a stream keeps no due time for an element')
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
local returned = hand_over(queue, delivered_among(queue, ids), BACK)
count_more(queue, #returned, 0)
return returned
