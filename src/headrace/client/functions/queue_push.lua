-- RQ.PUSH: append elements to a queue, which is made where it is missing.
--
-- KEYS   queue
-- ARGV   element…
-- reply  their IDs

local key = KEYS[1]
if #ARGV == 0 then
  return redis.error_reply("ERR wrong number of arguments for 'rq.push' command")
elseif #ARGV > MOST then
  return redis.error_reply('ERR at most ' .. MOST .. ' elements in one call on this server')
end
local queue, problem = open_queue(key)
if problem then
  return problem
elseif not queue then
  redis.call('XGROUP', 'CREATE', key, GROUP, '0', 'MKSTREAM')
elseif numbers_of(queue, PAUSED) == 1 then
  return redis.error_reply('PAUSED this queue takes no elements in')
end
local ids = {}
for i, element in ipairs(ARGV) do
  ids[i] = redis.call('XADD', key, '*', 'body', element)
end
return ids
