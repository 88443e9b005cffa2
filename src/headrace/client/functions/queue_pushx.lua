-- RQ.PUSHX: as RQ.PUSH. Its options are not possible here, and are refused.
--
-- KEYS   queue
-- ARGV   ELEMENTS, how many, element…
-- reply  their IDs

local option = (ARGV[1] or ''):upper()
if option == 'DELAY' or option == 'TTL' or option == 'RETRY' or option == 'MAXDELIVERIES' or option == 'DEADLETTER' then
  return redis.error_reply(
    'ERR ' .. option .. ' is not possible on this server: a stream keeps no time and no limit for a single element'
  )
elseif option ~= 'ELEMENTS' or #ARGV < 3 then
  return redis.error_reply('ERR syntax error')
elseif integer(ARGV[2]) ~= #ARGV - 2 then
  return redis.error_reply('ERR ELEMENTS must be followed by a number, 1 or more, and by exactly so many elements')
end
local elements = {}
for i = 3, #ARGV do
  elements[i - 2] = ARGV[i]
end
return push(KEYS[1], elements)
