-- Read for a group as XREADGROUP GROUP group consumer [COUNT n] [NOACK] CLAIM ms STREAMS stream > does since Redis 8.4.
--
-- KEYS   stream
-- ARGV   group, consumer, least idle time in ms, count (0: all), 1 without acknowledgement or 0
-- reply  entries, each [id, fields, ms since its last delivery, deliveries before]; none: an empty list
--
-- Entries pending with anybody for so long come first, the longest idle first; then new ones (0 and 0). The count is
-- for both together. Claimed ones stay pending in any case. XCLAIM drops pending IDs whose entry is gone, so they are
-- dropped here too, where the native option leaves them pending.

local PART = 1000 -- Words handed to one command; Lua's stack takes about 8000.
local LOOK_AT = 10000 -- With a count, as many idle entries are put in order, those with the lowest IDs.
local EVERYTHING = '9223372036854775807'

local key, group, consumer, least_idle = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local count, is_acked_at_once = tonumber(ARGV[4]), ARGV[5] == '1'

local digits = least_idle:match('^%-?([1-9]%d*)$') or least_idle:match('^0$')
if not digits or #digits > 19 or (#digits == 19 and digits > EVERYTHING) then
  return redis.error_reply('ERR min-idle-time is not an integer or out of range')
elseif least_idle:sub(1, 1) == '-' then
  return redis.error_reply('ERR min-idle-time must be a positive integer')
end

local function read_new(most)
  local words = {'XREADGROUP', 'GROUP', group, consumer}
  if most > 0 then
    words[#words + 1] = 'COUNT'
    words[#words + 1] = most
  end
  if is_acked_at_once then
    words[#words + 1] = 'NOACK'
  end
  words[#words + 1] = 'STREAMS'
  words[#words + 1] = key
  words[#words + 1] = '>'
  return redis.pcall(unpack(words))
end

-- One call, so that all idle times are taken at the same moment.
local look_at = count > 0 and math.max(count, LOOK_AT) or EVERYTHING
local idle = redis.pcall('XPENDING', key, group, 'IDLE', least_idle, '-', '+', look_at)
if idle.err then
  -- XREADGROUP fails as well then, in its own words.
  return idle.err:find('^NOGROUP') and read_new(1) or idle
end
for i, row in ipairs(idle) do
  row.place = i
end
table.sort(idle, function(one, other)
  if one[3] ~= other[3] then
    return one[3] > other[3]
  end
  return one.place < other.place
end)

local entries, next_idle = {}, 1
while next_idle <= #idle and (count == 0 or #entries < count) do
  local wanted = count == 0 and PART or math.min(PART, count - #entries)
  local ids = {}
  for i = next_idle, math.min(next_idle + wanted - 1, #idle) do
    ids[#ids + 1] = idle[i][1]
  end
  local last = next_idle + #ids - 1
  for _, entry in ipairs(redis.call('XCLAIM', key, group, consumer, 0, unpack(ids))) do
    while idle[next_idle][1] ~= entry[1] do
      next_idle = next_idle + 1 -- This one is gone from the stream.
    end
    entries[#entries + 1] = {entry[1], entry[2], idle[next_idle][3], idle[next_idle][4]}
  end
  next_idle = last + 1
end

if count == 0 or #entries < count then
  local new = read_new(count == 0 and 0 or count - #entries)
  if new and new.err then
    return new
  end
  for _, entry in ipairs(new and new[1][2] or {}) do
    entries[#entries + 1] = {entry[1], entry[2], 0, 0}
  end
end
return entries
