-- RQ.PAUSE: let a queue take no elements in, give none out, or neither; NONE ends it.
--
-- KEYS   queue
-- ARGV   IN, OUT, ALL or NONE
-- reply  OK

local modes = {IN = {1, 0}, OUT = {0, 1}, ALL = {1, 1}, NONE = {0, 0}}

local mode = #ARGV == 1 and modes[ARGV[1]:upper()]
if not mode then
  return redis.error_reply('ERR syntax error')
end
local queue, problem = open_queue(KEYS[1])
if problem then
  return problem
elseif not queue and mode ~= modes.NONE then
  redis.call('XGROUP', 'CREATE', KEYS[1], GROUP, '0', 'MKSTREAM') -- So that it can be paused before it is used.
  queue = open_queue(KEYS[1])
end
if queue then
  keep_numbers(queue, PAUSED, mode[1], mode[2])
end
return redis.status_reply('OK')
