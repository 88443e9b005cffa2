-- RQ.INFO, and with STATS as argument RQ.STATS: how many elements there are.
--
-- KEYS   queue
-- ARGV   [STATS]
-- reply  names and numbers in turn

local queue, problem = open_queue(KEYS[1])
if not queue then
  return problem or redis.error_reply(EMPTY_KEY)
end
local delivered = count_pending(queue)
local reply = {'undelivered', count_undelivered(queue, delivered), 'delivered', delivered}
if ARGV[1] == 'STATS' then
  local nacks, redeliveries = numbers_of(queue, COUNTS)
  local is_in, is_out = numbers_of(queue, PAUSED)
  local paused = is_in == 1 and (is_out == 1 and 'all' or 'in') or (is_out == 1 and 'out' or 'none')
  local more = {
    'delayed', 0, 'nacks', nacks, 'redeliveries', redeliveries, 'dead', 0, 'expired', 0, 'paused', paused,
    'last-id', last_pushed(queue),
  }
  for _, word in ipairs(more) do
    reply[#reply + 1] = word
  end
end
return reply
