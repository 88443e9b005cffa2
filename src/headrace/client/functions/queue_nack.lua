-- RQ.NACK: give delivered elements back. They are the next ones to be popped, in the order they were pushed.
--
-- KEYS   queue
-- ARGV   [DELAY 0] id…
-- reply  the IDs that were delivered until now; null without the queue

local words = {unpack(ARGV, ARGV[1] and ARGV[1]:upper() == 'DELAY' and 3 or 1)}
if #words < #ARGV and ARGV[2] ~= '0' then
  return redis.error_reply('ERR DELAY is not possible on this server: a stream keeps no time for a single element')
end
local queue, ids, instead = open_with_ids(KEYS[1], words, 'rq.nack')
if instead ~= nil then
  return instead
end
local returned = hand_over(queue, delivered_among(queue, ids), BACK)
count_more(queue, #returned, 0)
return returned
