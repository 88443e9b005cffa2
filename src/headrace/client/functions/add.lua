-- Add an entry unless one with the same publish id was added within the window.
--
-- KEYS   stream, ids (hash: publish id -> entry ID), ids:age (sorted set: publish id by time, in ms)
-- ARGV   publish id, window in ms, most ids to remember, field, value…
-- reply  [entry ID, 1 new or 0 seen before]
--
-- Time is the server's. Ids go when they are older than the window, or the oldest first when there are too many; each
-- call drops at most DROP_AT_ONCE of either kind, so that none takes long. Without the stream nothing is remembered.

local DROP_AT_ONCE = 100

local stream, ids, ages = KEYS[1], KEYS[2], KEYS[3]
local id, window_ms, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local time = redis.call('TIME')
-- With microseconds, so that ids of the same millisecond keep their order. Lua itself would write 14 digits only.
local now_ms = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
local now_text, too_old_text = ('%.3f'):format(now_ms), ('%.3f'):format(now_ms - window_ms)

if redis.call('EXISTS', stream) == 0 then
  redis.call('UNLINK', ids, ages)
end
local entry_id = redis.call('HGET', ids, id)
local added_ms = redis.call('ZSCORE', ages, id)
if entry_id and added_ms and tonumber(added_ms) > now_ms - window_ms then
  return {entry_id, 0}
end

local function forget(old)
  if #old > 0 then
    redis.call('HDEL', ids, unpack(old))
    redis.call('ZREM', ages, unpack(old))
  end
end

local added = redis.pcall('XADD', stream, '*', unpack(ARGV, 4))
if type(added) == 'table' then
  return added
end
redis.call('HSET', ids, id, added)
redis.call('ZADD', ages, now_text, id)
-- A stream nobody publishes to does not keep its ids for ever.
redis.call('PEXPIRE', ids, ARGV[2])
redis.call('PEXPIRE', ages, ARGV[2])
forget(redis.call('ZRANGEBYSCORE', ages, '-inf', too_old_text, 'LIMIT', 0, DROP_AT_ONCE))
local surplus = math.min(redis.call('ZCARD', ages) - most, DROP_AT_ONCE)
if surplus > 0 then
  forget(redis.call('ZRANGE', ages, 0, surplus - 1))
end
return {added, 1}
