-- HR.START: which attempt this is, before entries are tried.
--
-- KEYS   stream, due, attempts
-- ARGV   group, consumer, [RECORDED], id…
-- reply  per id [attempt, last error]; 0 when the consumer does not hold it, negative: not before so many ms
--
-- A redelivered entry without a record counts as tried once; with RECORDED, which says that every first try is told
-- too, as never tried.

local is_recorded = #ARGV > 3 and ARGV[3]:upper() == 'RECORDED'
if is_recorded then
  table.remove(ARGV, 3)
end
local key, due, attempts = KEYS[1], KEYS[2], KEYS[3]
local ids, held, wrong = open_step(key, ARGV)
local has_records, wrong_record = find_records(due, attempts)
if wrong or wrong_record then
  return wrong or wrong_record
end

local now, reply = now_ms(), {}
for i, id in ipairs(ids) do
  local due_ms = held[id] and has_records and redis.call('ZSCORE', due, id)
  if not held[id] then
    reply[i] = {0, ''}
  elseif due_ms and tonumber(due_ms) > now then
    reply[i] = {now - math.ceil(math.min(tonumber(due_ms), LAST_MS)), ''}
  else
    local before = redis.call('HGET', attempts, id)
    local count, deliveries, last_error
    if before then
      count, deliveries, last_error = read_attempts(before)
      if deliveries ~= held[id] then
        count = count + 1
      end
    else
      count, last_error = (held[id] <= 1 or is_recorded) and 1 or 2, ''
    end
    local after = write_attempts(count, held[id], last_error)
    if after ~= before then
      redis.call('HSET', attempts, id, after)
    end
    if due_ms then
      redis.call('ZREM', due, id)
    end
    reply[i] = {count, last_error}
  end
end
return reply
