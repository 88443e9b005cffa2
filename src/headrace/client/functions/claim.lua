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
local LOOK_AT = 1000 -- With a count, so many idle entries are put in order at a time, lowest IDs first.
local LOOKS = 100 -- And no more often than this in one call; it goes on only while what it finds is gone.
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

-- Idle entries from a place on, the longest idle first, and the highest ID among them. One XPENDING, so that all idle
-- times are taken at the same moment.
local function look(from, most)
  local idle = redis.pcall('XPENDING', key, group, 'IDLE', least_idle, from, '+', most)
  local highest = not idle.err and #idle > 0 and idle[#idle][1]
  for i, row in ipairs(idle) do
    row.place = i
  end
  table.sort(idle, function(one, other)
    if one[3] ~= other[3] then
      return one[3] > other[3]
    end
    return one.place < other.place
  end)
  return idle, highest
end

local entries = {}

local function claim(idle)
  local at = 1
  while at <= #idle and (count == 0 or #entries < count) do
    local ids = {}
    for i = at, math.min(#idle, at + (count == 0 and PART or math.min(PART, count - #entries)) - 1) do
      ids[#ids + 1] = idle[i][1]
    end
    local last = at + #ids - 1
    for _, entry in ipairs(redis.call('XCLAIM', key, group, consumer, 0, unpack(ids))) do
      while idle[at][1] ~= entry[1] do
        at = at + 1 -- This one is gone from the stream.
      end
      entries[#entries + 1] = {entry[1], entry[2], idle[at][3], idle[at][4]}
    end
    at = last + 1
  end
end

local most = count > 0 and math.max(count, LOOK_AT) or EVERYTHING
local from = '-'
for _ = 1, LOOKS do
  local idle, highest = look(from, most)
  if idle.err then
    -- XREADGROUP fails as well when there is no group, in its own words.
    return idle.err:find('^NOGROUP') and read_new(1) or idle
  end
  claim(idle)
  if count == 0 or #entries == count or #idle < most then
    break
  end
  from = '(' .. highest
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
