-- HR.SWEEP: consumers that did nothing for so long and have nothing pending are removed.
--
-- When the group has nothing pending at all, records of attempts that were left behind, by a plain XACK for example, go
-- as well.
--
-- KEYS   stream, due, attempts
-- ARGV   group, IDLE, ms, then CONSUMER and a name to look at that one only
-- reply  the names of those removed

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
local removed, pending = {}, 0
for _, row in ipairs(rows) do
  local facts = {}
  for i = 1, #row, 2 do
    facts[row[i]] = row[i + 1]
  end
  pending = pending + facts.pending
  local is_meant = not ARGV[5] or ARGV[5] == facts.name
  if is_meant and facts.pending == 0 and facts.idle >= idle_ms then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], facts.name)
    removed[#removed + 1] = facts.name
  end
end
if has_records and pending == 0 then
  redis.call('DEL', KEYS[2], KEYS[3])
end
return removed
