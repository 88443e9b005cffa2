-- HR.RELEASE: entries that their consumer will not finish are free for the next one at once.
--
-- KEYS   stream, due, attempts
-- ARGV   group, consumer, id…
-- reply  per id 1, or 0 when the consumer does not hold it
--
-- Their idle time becomes the longest there is, and the delivery is taken off their count, down to 1. An attempt that
-- was begun with it does not count.

local NOT_TRIED = '0'

local key, due, attempts = KEYS[1], KEYS[2], KEYS[3]
local ids, held, wrong = open_step(key, ARGV)
local has_records, wrong_record = find_records(due, attempts)
if wrong or wrong_record then
  return wrong or wrong_record
end

local function record_of(id, before)
  if not before then
    return held[id] <= 1 and NOT_TRIED or nil
  end
  local count, deliveries, last_error = read_attempts(before)
  return write_attempts(deliveries == held[id] and count - 1 or count, 0, last_error)
end

local now_text, reply = ('%.0f'):format(now_ms()), {}
for i, id in ipairs(ids) do
  reply[i] = held[id] and 1 or 0
  if held[id] and not (has_records and redis.call('ZSCORE', due, id)) then
    local deliveries = math.max(1, held[id] - 1)
    local claimed = redis.call('XCLAIM', key, ARGV[1], ARGV[2], 0, id, 'TIME', 0, 'RETRYCOUNT', deliveries, 'JUSTID')
    if #claimed == 0 then
      redis.call('HDEL', attempts, id) -- It is gone from the stream, and pending no longer.
      held[id] = nil
    else
      local before = redis.call('HGET', attempts, id)
      local after = record_of(id, before)
      if after and after ~= before then
        redis.call('HSET', attempts, id, after)
      end
      redis.call('ZADD', due, now_text, id)
      has_records = true
    end
  end
end
return reply
