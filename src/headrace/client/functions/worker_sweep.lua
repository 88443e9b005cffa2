-- HR.SWEEP: consumers that did nothing for so long and have nothing pending are removed.
--
-- What such a consumer has pending and what is gone from the stream is dropped first, with its records: nobody can claim
-- it, as XREADGROUP with CLAIM passes over deleted entries.
-- When the group has nothing pending at all, records of attempts that were left behind, by a plain XACK for example, go
-- as well.
--
-- KEYS   stream, due, attempts
-- ARGV   group, IDLE, ms, then CONSUMER and a name to look at that one only
-- reply  the names of those removed

local MOST_LOOKED_AT = 100 -- Pending entries in one call.

local idle_ms = ARGV[3] and whole_number(ARGV[3], 0, 2 ^ 53)
if (#ARGV ~= 3 and #ARGV ~= 5) or ARGV[2]:upper() ~= 'IDLE' or (ARGV[4] and ARGV[4]:upper() ~= 'CONSUMER') then
  return redis.error_reply(SYNTAX)
elseif not idle_ms then
  return redis.error_reply(ARGV[3]:find('^%-%d+$') and 'ERR IDLE must not be negative' or NOT_AN_INTEGER)
end
local rows = redis.pcall('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])
if rows.err then
  return (rows.err:find('^NOGROUP') or rows.err:find('no such key', 1, true)) and {} or rows
end
local has_records, wrong = find_records(KEYS[2], KEYS[3])
if wrong then
  return wrong
end

-- What the consumer has pending and is no longer in the stream: how many were dropped, how many were looked at.
local function drop_gone(name, most)
  local found, gone = redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', most, name), {}
  for _, row in ipairs(found) do
    if #redis.call('XRANGE', KEYS[1], row[1], row[1]) == 0 then
      gone[#gone + 1] = row[1]
    end
  end
  if #gone > 0 then
    redis.call('XACK', KEYS[1], ARGV[1], unpack(gone))
    redis.call('ZREM', KEYS[2], unpack(gone))
    redis.call('HDEL', KEYS[3], unpack(gone))
  end
  return #gone, #found
end

local removed, pending, room = {}, 0, MOST_LOOKED_AT
for _, row in ipairs(rows) do
  local facts = {}
  for i = 1, #row, 2 do
    facts[row[i]] = row[i + 1]
  end
  local left = facts.pending
  if (not ARGV[5] or ARGV[5] == facts.name) and facts.idle >= idle_ms then
    if left > 0 and room > 0 then
      local gone, looked_at = drop_gone(facts.name, room)
      left, room = left - gone, room - looked_at
    end
    if left == 0 then
      redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], facts.name)
      removed[#removed + 1] = facts.name
    end
  end
  pending = pending + left
end
if has_records and pending == 0 then
  redis.call('DEL', KEYS[2], KEYS[3])
end
return removed
