-- RQ.EXTEND: whoever has these elements still works on them; the time since their delivery begins anew.
--
-- KEYS   queue
-- ARGV   id…
-- reply  the IDs that are delivered; null without the queue

local queue, ids, instead = open_with_ids(KEYS[1], ARGV, 'rq.extend')
if instead ~= nil then
  return instead
end
return deliver_again(queue, delivered_among(queue, ids), 'JUSTID')
