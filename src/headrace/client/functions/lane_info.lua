-- LANE.INFO: the settings and how much there is; or one key.
--
-- ARGV   group, KEY key or nothing
-- reply  name, value…; without the key null

local order, wrong = open_order(KEYS, ARGV, 1, PAGE)
if wrong then
  return wrong
elseif #ARGV ~= 1 and not (#ARGV == 3 and ARGV[2]:upper() == 'KEY') then
  return redis.error_reply(SYNTAX)
end
if #ARGV == 3 then
  local key = ARGV[3]
  local ticket = read_tickets(order, {key})[1]
  if not ticket then
    return false
  end
  local is_timed = ticket.state == 'held' or ticket.state == 'waiting'
  local ms = tonumber(ticket.until_text or '0')
  return {
    'state', ticket.state, 'attempts', ticket.attempts, 'fence', tonumber(ticket.fence or '0'),
    'until', is_timed and ms or 0, 'since', is_timed and 0 or ms,
    'consumer', ticket.consumer or '', 'given', ticket.given or 0, 'error', ticket.error,
    'length', lane_length(order, key), 'ids', {unpack(lane_head(order, key, PAGE))},
  }
end

local strays = 0
for _, row in ipairs(redis.call('XINFO', 'CONSUMERS', order.stream, order.group)) do
  local facts = {}
  for i = 1, #row, 2 do
    facts[row[i]] = row[i + 1]
  end
  strays = facts.name == order.reader and facts.pending or strays
end
return {
  'keyfields', order.names, 'poison', order.poison, 'maxattempts', order.max_attempts, 'keyless', order.keyless,
  'lease', order.lease, 'reader', order.reader, 'tickets', order.tickets, 'consumers', order.consumers,
  'layout', order.is_set and 'set' or 'list', 'keys', order.sizes.keys, 'ready', order.sizes.ready,
  'timed', order.sizes.timed, 'registered', order.sizes.consumers, 'pending-reader', strays, 'fence', order.fence,
  'rebuilding', order.rebuild and 1 or 0,
}
