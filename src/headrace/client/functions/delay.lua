-- Add an entry when its time has come: until then it lies beside the stream, and worker_due brings it there.
--
-- KEYS   stream, ids, ids:age, delayed, delayed:body
-- ARGV   publish id or nothing, window in ms, most ids to remember, AT or DELAY, ms, field, value…
-- reply  [entry ID, or nil while it is delayed; 1 new or 0 seen before]
--
--   delayed        sorted set: member -> when, in ms
--   delayed:body   hash: member -> publish id, field, value…, each as length:bytes; '' -> the highest member so far
--
-- A time that has passed is now. Members count up, so that messages of the same millisecond keep their order.

local MOST_WORDS = 7000 -- Lua's stack takes about 8000.
local LAST_MS = 2 ^ 53 -- Scores are doubles, exact up to here.

local stream, delayed, bodies = KEYS[1], KEYS[4], KEYS[5]
local id, window_ms, most, when_ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[5])

if #ARGV - 5 > MOST_WORDS then
  return redis.error_reply('ERR an entry that comes later has at most 3500 fields')
end
local now_ms = exact_now_ms()
local this_ms = math.floor(now_ms)
if ARGV[4] == 'DELAY' then
  when_ms = this_ms + when_ms
end
if when_ms > LAST_MS then
  return redis.error_reply('ERR AT is not a time in milliseconds')
end
for command, key in pairs({XLEN = stream, ZCARD = delayed, HLEN = bodies}) do
  local size = redis.pcall(command, key)
  if type(size) == 'table' then
    return size
  end
end

if id ~= '' then
  local seen = find_seen(KEYS, id, window_ms, now_ms)
  if seen then
    return {seen ~= DELAYED and seen, 0}
  end
end
local added = DELAYED
if when_ms <= this_ms then
  added = redis.pcall('XADD', stream, '*', unpack(ARGV, 6))
  if type(added) == 'table' then
    return added
  end
else
  local body = {#id .. ':' .. id}
  for i = 6, #ARGV do
    body[#body + 1] = #ARGV[i] .. ':' .. ARGV[i]
  end
  local last = redis.call('HGET', bodies, '')
  last = last and last:find('^%d+$') and #last <= 16 and tonumber(last) or 0 -- Anybody may have written to the hash.
  local member = ('%016.0f'):format(last + 1)
  redis.call('ZADD', delayed, ('%.0f'):format(when_ms), member)
  redis.call('HSET', bodies, '', member, member, table.concat(body))
end
if id ~= '' then
  if redis.call('EXISTS', stream) == 0 then
    redis.call('XGROUP', 'CREATE', stream, 'hr:new', '0', 'MKSTREAM') -- Only to remember the id.
    redis.call('XGROUP', 'DESTROY', stream, 'hr:new')
  end
  remember(KEYS, id, added, window_ms, most, now_ms)
end
return {added ~= DELAYED and added, 1}
