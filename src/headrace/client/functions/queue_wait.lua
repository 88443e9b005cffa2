-- For those who wait for an element: the ID of each queue behind which a new one is to be waited for.
--
-- KEYS   queues
-- reply  an ID for each
--
-- That is the last one delivered, so that an element pushed since the pop that found nothing ends the wait at once.
-- From a queue that gives nothing out it is the last one pushed: it has more, and nobody may have them.

local reply = {}
for i, key in ipairs(KEYS) do
  local queue, problem = open_queue(key)
  if problem then
    return problem
  end
  local is_paused = queue and select(2, numbers_of(queue, PAUSED)) == 1
  reply[i] = is_paused and last_pushed(queue) or queue and queue.last_id or '0-0'
end
return reply
