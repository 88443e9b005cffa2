-- RQ.PUSH: append elements to a queue, which is made where it is missing.
--
-- KEYS   queue
-- ARGV   element…
-- reply  their IDs

if #ARGV == 0 then
  return redis.error_reply("ERR wrong number of arguments for 'rq.push' command")
end
return push(KEYS[1], ARGV)
