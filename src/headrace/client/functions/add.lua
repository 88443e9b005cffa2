-- Add an entry unless one with the same publish id was added within the window.
--
-- KEYS   stream, ids, ids:age
-- ARGV   publish id, window in ms, most ids to remember, field, value…
-- reply  [entry ID, or nil while it is delayed; 1 new or 0 seen before]

local id, window_ms, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local now_ms = exact_now_ms()
local seen = find_seen(KEYS, id, window_ms, now_ms)
if seen then
  return {seen ~= DELAYED and seen, 0}
end
local added = redis.pcall('XADD', KEYS[1], '*', unpack(ARGV, 4))
if type(added) == 'table' then
  return added
end
remember(KEYS, id, added, window_ms, most, now_ms)
return {added, 1}
