-- HR.DUE: move delayed messages whose time has come into the stream, and take over retries whose time has come.
--
-- KEYS   stream, delayed, delayed:body, due, attempts, again, ids
-- ARGV   group, consumer, COUNT, most of each
-- reply  [entries that are the consumer's now; ms until the next, -1 when nothing waits; entries in `again`]

local key, delayed, bodies, due, attempts, again, publish_ids = unpack(KEYS)
local group, consumer = ARGV[1], ARGV[2]
local count = ARGV[4] and whole_number(ARGV[4], 1, MOST)
if #ARGV ~= 4 or ARGV[3]:upper() ~= 'COUNT' then
  return redis.error_reply(SYNTAX)
elseif not count then
  return redis.error_reply(ARGV[4]:find('^%-?%d+$') and 'ERR COUNT must be from 1 to 1000' or NOT_AN_INTEGER)
end
local looks = {
  {'XPENDING', key, group, '-', '+', 1}, {'ZCARD', delayed}, {'HLEN', bodies}, {'ZCARD', due}, {'HLEN', attempts},
  {'XLEN', again},
}
local sizes = {}
for i, words in ipairs(looks) do
  sizes[i] = redis.pcall(unpack(words))
  if type(sizes[i]) == 'table' and sizes[i].err then
    return sizes[i]
  end
end

local now = now_ms()
local now_text = ('%.0f'):format(now)

local function whose_time_has_come(times)
  return redis.call('ZRANGEBYSCORE', times, '-inf', now_text, 'LIMIT', 0, count)
end

-- The publish id, then fields and values. Nil: it is no body of ours.
local function read_body(body)
  local words, place = {}, 1
  while body and place <= #body do
    local digits = body:match('^(%d+):', place)
    if not digits or #digits > 16 then
      return nil
    end
    local start = place + #digits + 1
    place = start + tonumber(digits)
    if place - 1 > #body then
      return nil
    end
    words[#words + 1] = body:sub(start, place - 1)
  end
  return #words >= 3 and #words % 2 == 1 and #words <= MOST_WORDS and words or nil
end

local function move_delayed()
  local members, moved = whose_time_has_come(delayed), {}
  local found = #members > 0 and redis.call('HMGET', bodies, unpack(members)) or {}
  for i, member in ipairs(members) do
    local words = read_body(found[i])
    local added = words and redis.pcall('XADD', key, '*', unpack(words, 2))
    if type(added) == 'table' then
      break -- No ID is left: the message waits for somebody to mend the stream.
    end
    moved[i] = member
    if words and words[1] ~= '' and redis.call('HGET', publish_ids, words[1]) == '0-0' then
      redis.call('HSET', publish_ids, words[1], added)
    end
  end
  if #moved > 0 then
    redis.call('ZREM', delayed, unpack(moved))
    redis.call('HDEL', bodies, unpack(moved))
    if redis.call('ZCARD', delayed) == 0 then
      redis.call('DEL', bodies) -- Nothing is left, and counting may begin again.
    end
  end
end

local function take_due()
  local members, ids = whose_time_has_come(due), {}
  for _, member in ipairs(members) do
    if member:find('^%d+%-%d+$') then
      ids[#ids + 1] = member
    end
  end
  local entries = #ids > 0 and redis.call('XCLAIM', key, group, consumer, 0, unpack(ids)) or {}
  if #members > 0 then
    redis.call('ZREM', due, unpack(members))
    local is_ours, others = {}, {}
    for _, entry in ipairs(entries) do
      is_ours[entry[1]] = true
    end
    for _, member in ipairs(members) do
      if not is_ours[member] then
        others[#others + 1] = member -- Settled meanwhile, or gone from the stream.
      end
    end
    if #others > 0 then
      redis.call('HDEL', attempts, unpack(others))
    end
  end
  return entries
end

local function until_first(times)
  local first = redis.call('ZRANGE', times, 0, 0, 'WITHSCORES')
  return first[2] and math.max(0, math.ceil(math.min(tonumber(first[2]), LAST_MS)) - now)
end

local entries = {}
if sizes[2] > 0 then
  move_delayed()
end
if sizes[4] > 0 then
  entries = take_due()
end
local one, other = until_first(delayed), until_first(due)
local wait_ms = one and other and math.min(one, other) or one or other or -1
return {entries, wait_ms, again ~= key and sizes[6] or 0}
