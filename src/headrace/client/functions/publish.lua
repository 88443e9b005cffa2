-- What the steps that publish share: which publish ids were seen.
--
--   ids       hash: publish id -> entry ID, '0-0' while the message is delayed
--   ids:age   sorted set: publish id by time, in ms
--
-- Time is the server's. Ids go when they are older than the window, or the oldest first when there are too many; each
-- call drops at most DROP_AT_ONCE of either kind, so that none takes long. Without the stream nothing is remembered.

local DROP_AT_ONCE = 100
local DELAYED = '0-0'

-- With microseconds, so that ids of the same millisecond keep their order.
local function exact_now_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
end

-- The entry ID of a publish id seen within the window, or nil.
local function find_seen(keys, id, window_ms, now_ms)
  if redis.call('EXISTS', keys[1]) == 0 then
    redis.call('UNLINK', keys[2], keys[3])
  end
  local entry_id = redis.call('HGET', keys[2], id)
  local added_ms = redis.call('ZSCORE', keys[3], id)
  if entry_id and added_ms and tonumber(added_ms) > now_ms - window_ms then
    return entry_id
  end
end

local function forget(keys, old)
  if #old > 0 then
    redis.call('HDEL', keys[2], unpack(old))
    redis.call('ZREM', keys[3], unpack(old))
  end
end

local function remember(keys, id, entry_id, window_ms, most, now_ms)
  -- Lua itself would write 14 digits only.
  local now_text, too_old_text = ('%.3f'):format(now_ms), ('%.3f'):format(now_ms - window_ms)
  redis.call('HSET', keys[2], id, entry_id)
  redis.call('ZADD', keys[3], now_text, id)
  -- A stream nobody publishes to does not keep its ids for ever.
  redis.call('PEXPIRE', keys[2], ('%.0f'):format(window_ms))
  redis.call('PEXPIRE', keys[3], ('%.0f'):format(window_ms))
  forget(keys, redis.call('ZRANGEBYSCORE', keys[3], '-inf', too_old_text, 'LIMIT', 0, DROP_AT_ONCE))
  local surplus = math.min(redis.call('ZCARD', keys[3]) - most, DROP_AT_ONCE)
  if surplus > 0 then
    forget(keys, redis.call('ZRANGE', keys[3], 0, surplus - 1))
  end
end
