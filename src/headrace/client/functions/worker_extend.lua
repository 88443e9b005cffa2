-- HR.EXTEND: the idle time of entries begins again, because their consumer still works on them.
--
-- KEYS   stream
-- ARGV   group, consumer, id…
-- reply  per id 1, or 0 when the consumer does not hold it
--
-- XCLAIM would drop entries that are gone from the stream; those stay pending and are looked at no further.

local key = KEYS[1]
local ids, held, wrong = open_step(key, ARGV)
if wrong then
  return wrong
end
local there, reply = {}, {}
for i, id in ipairs(ids) do
  reply[i] = held[id] and 1 or 0
  if held[id] and #redis.call('XRANGE', key, id, id) > 0 then
    there[#there + 1] = id
  end
end
if #there > 0 then
  there[#there + 1] = 'JUSTID'
  redis.call('XCLAIM', key, ARGV[1], ARGV[2], 0, unpack(there))
end
return reply
