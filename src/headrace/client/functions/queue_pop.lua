-- RQ.POP: take elements, all that is wanted from the first queue, then from the second, …
--
-- KEYS   queues
-- ARGV   [COUNT count] [BLOCK milliseconds]
-- reply  [queue, id, body] for each; where there are none an empty list, with BLOCK null
--
-- No call can wait inside a server, so with BLOCK the caller waits and calls again. A queue that does not exist, or
-- gives nothing out, is passed over. Elements that were given back come first.

local USAGE = 'ERR usage: RQ.POP [COUNT count] [BLOCK milliseconds] key [key ...], with a count of 0 or more'

local count, is_waiting = 1, false
for i = 1, #ARGV, 2 do
  local option, value = ARGV[i]:upper(), ARGV[i + 1] and integer(ARGV[i + 1])
  if not ARGV[i + 1] or (option ~= 'COUNT' and option ~= 'BLOCK') or (option == 'COUNT' and value and value < 0) then
    return redis.error_reply(USAGE)
  elseif not value then
    return redis.error_reply(option == 'COUNT' and NOT_AN_INTEGER or 'ERR timeout is not an integer or out of range')
  elseif value < 0 then
    return redis.error_reply('ERR timeout is negative')
  end
  count, is_waiting = option == 'COUNT' and value or count, is_waiting or option == 'BLOCK'
end
local left = math.min(count, MOST)

local queues, seen = {}, {}
for _, key in ipairs(KEYS) do
  local queue, problem = open_queue(key)
  if problem then
    return problem
  end
  queues[#queues + 1] = not seen[key] and queue or nil
  seen[key] = true
end

local reply = {}
local function hand_out(queue, entries)
  for _, entry in ipairs(entries) do
    reply[#reply + 1] = {queue.key, entry[1], entry[2][2]}
  end
  left = left - #entries
end

for _, queue in ipairs(queues) do
  local _, is_paused = numbers_of(queue, PAUSED)
  if left > 0 and is_paused == 0 then
    local back = {}
    for i, row in ipairs(redis.call('XPENDING', queue.key, GROUP, '-', '+', left, BACK)) do
      back[i] = row[1]
    end
    local again = deliver_again(queue, back)
    count_more(queue, 0, #again)
    hand_out(queue, again)
  end
  if left > 0 and is_paused == 0 then
    local pile = first_pile(queue)
    local new = redis.call('XREADGROUP', 'GROUP', GROUP, pile, 'COUNT', left, 'STREAMS', queue.key, '>')
    if new then
      remember_pile(queue, pile)
      hand_out(queue, new[1][2])
    end
  end
end
if #reply == 0 and is_waiting and count > 0 then
  return false
end
return reply
