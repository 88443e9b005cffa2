-- RQ.RECOVER: deliver again what was not acknowledged for a while, the oldest delivery first.
--
-- KEYS   queue
-- ARGV   count, least time since the delivery in ms
-- reply  [id, body] for each; null without the queue

local LOOKS = 100 -- Each goes past up to a call's worth of elements whose entry is gone, and drops them.

if #ARGV ~= 2 then
  return redis.error_reply("ERR wrong number of arguments for 'rq.recover' command")
end
local count, elapsed_ms = integer(ARGV[1]), integer(ARGV[2])
if not count or not elapsed_ms or count < 0 or elapsed_ms < 0 then
  return redis.error_reply('ERR usage: RQ.RECOVER key count elapsed, both 0 or more')
end
local queue, problem = open_queue(KEYS[1])
if not queue then
  return problem or false
end
count = math.min(count, MOST)
if select(2, numbers_of(queue, PAUSED)) == 1 then
  return {}
end

local function find_due()
  local ids, next_element = {}, by_delivery(queue, count)
  while #ids < count do
    local row = next_element()
    if not row or row[3] < elapsed_ms then
      break
    end
    ids[#ids + 1] = row[1]
  end
  return ids
end

local reply = {}
for _ = 1, count > 0 and LOOKS or 0 do
  local due = find_due()
  for i, entry in ipairs(deliver_again(queue, due)) do
    reply[i] = {entry[1], entry[2][2]}
  end
  if #reply > 0 or #due == 0 then
    break
  end
end
count_more(queue, 0, #reply)
return reply
