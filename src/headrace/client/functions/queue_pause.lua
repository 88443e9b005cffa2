-- RQ.PAUSE: let a queue take no elements in, give none out, or neither; NONE ends it.
--
-- KEYS   queue
-- ARGV   IN, OUT, ALL or NONE
-- reply  OK

local modes = {IN = {1, 0}, OUT = {0, 1}, ALL = {1, 1}, NONE = {0, 0}}

local mode = #ARGV == 1 and modes[ARGV[1]:upper()]
if not mode then
  return redis.error_reply('ERR usage: RQ.PAUSE key IN|OUT|ALL|NONE')
end
local queue, problem = open_queue(KEYS[1])
if not queue then
  return problem or redis.error_reply(EMPTY_KEY)
end
keep_numbers(queue, PAUSED, mode[1], mode[2])
return redis.status_reply('OK')
