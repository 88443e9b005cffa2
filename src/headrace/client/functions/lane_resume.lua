-- LANE.RESUME: a key that is parked or waits goes on, with SKIP without its first message.
--
-- ARGV   group, key, SKIP or nothing
-- reply  1, or 0 when the key is neither

local order, wrong = open_order(KEYS, ARGV, 2)
wrong = wrong or find_wrong_target({[order.dead] = true})
if wrong then
  return wrong
elseif #ARGV > 3 or (ARGV[3] and ARGV[3]:upper() ~= 'SKIP') then
  return redis.error_reply(SYNTAX)
end
local key = ARGV[2]
local ticket = read_tickets(order, {key})[1]
if not ticket or (ticket.state ~= 'parked' and ticket.state ~= 'waiting') then
  return 0
end

-- Messages that were acknowledged by hand are not the first any more.
local head, gone = lane_head(order, key, PAGE), 0
local is_pending = set_of(claim(order, LANES, head, 'JUSTID'))
while gone < #head and not is_pending[head[gone + 1]] do
  gone = gone + 1
end
if ARGV[3] and gone < #head then
  gone = gone + 1
  bury(order, head[gone], ticket.attempts, ticket.error ~= '' and ticket.error or 'skipped', '')
end
if gone == #head and #head == PAGE then
  head[#head + 1] = '' -- There may be more: who takes the key looks further.
end
go_on(order, key, head, gone)
flush(order)
return 1
