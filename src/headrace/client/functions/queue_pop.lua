-- RQ.POP without BLOCK: take elements, all that is wanted from the first queue, then from the second, …
--
-- KEYS   queues
-- ARGV   count
-- reply  [queue, id, body] for each
--
-- A queue that does not exist, or gives nothing out, is passed over. Those that were given back come first.

local count = ARGV[1] and integer(ARGV[1])
if not count then
  return redis.error_reply('ERR value is not an integer or out of range')
elseif count < 0 then
  return redis.error_reply('ERR usage: RQ.POP [COUNT count] [BLOCK milliseconds] key [key ...]')
end
local left = math.min(count, MOST)

local queues = {}
for _, key in ipairs(KEYS) do
  local queue, problem = open_queue(key)
  if problem then
    return problem
  end
  queues[#queues + 1] = queue
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
return reply
