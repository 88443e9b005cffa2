-- LANE.CONFIG: set a group up for order per key.
--
-- ARGV   group, KEYFIELDS, n, field…, then in any order: POISON PARK|SKIP, MAXATTEMPTS n, KEYLESS OWN|DEAD, LEASE ms,
--        READER name, MAPS tickets consumers (they are those among the keys), LAYOUT LIST|SET
-- reply  OK
--
-- What decides where messages are (KEYFIELDS, READER, MAPS, LAYOUT) begins a rebuild when it changes.

local MOST_NAMES = 64
local BAD_NAMES = 'ERR KEYFIELDS must be followed by a number, 1 to 64, and by as many names'

if #ARGV < 4 then
  return redis.error_reply('ERR wrong number of arguments')
end
local order = order_of(KEYS, ARGV[1])
local count = whole_number(ARGV[3], 1, math.min(MOST_NAMES, #ARGV - 3))
if ARGV[2]:upper() ~= 'KEYFIELDS' then
  return redis.error_reply(SYNTAX)
elseif not count then
  return redis.error_reply(BAD_NAMES)
end
local names = {}
for i = 4, 3 + count do
  if ARGV[i] == '' then
    return redis.error_reply('ERR a name of KEYFIELDS must not be empty')
  end
  names[#names + 1] = #ARGV[i] .. ':' .. ARGV[i]
end

local chosen = {
  keyfields = table.concat(names), poison = 'park', maxattempts = '0', keyless = 'own', lease = '30000',
  reader = 'master', layout = 'list', tickets = order.tickets, consumers = order.consumers,
}
local CHOICES = {
  POISON = {park = true, skip = true}, KEYLESS = {own = true, dead = true}, LAYOUT = {list = true, set = true},
}
local NUMBERS = {
  MAXATTEMPTS = {0, 2 ^ 31, 'ERR MAXATTEMPTS is not a number of attempts, or 0 for no limit'},
  LEASE = {1, 2 ^ 52, BAD_LEASE},
}
local at, is_given = 4 + count, {KEYFIELDS = true}
while at <= #ARGV do
  local word, value = ARGV[at]:upper(), ARGV[at + 1]
  if not value or is_given[word] then
    return redis.error_reply(SYNTAX)
  elseif CHOICES[word] and CHOICES[word][value:lower()] then
    chosen[word:lower()] = value:lower()
  elseif NUMBERS[word] then
    local number = whole_number(value, NUMBERS[word][1], NUMBERS[word][2])
    if not number then
      return redis.error_reply(NUMBERS[word][3])
    end
    chosen[word:lower()] = text_of(number)
  elseif word == 'READER' and value ~= '' and value ~= LANES then
    chosen.reader = value
  elseif word == 'MAPS' and value == order.tickets and ARGV[at + 2] == order.consumers then
    at = at + 1
  elseif word == 'READER' then
    return redis.error_reply("ERR READER must be a consumer's name other than 'lanes'")
  else
    return redis.error_reply(SYNTAX)
  end
  is_given[word], at = true, at + 2
end
if order.tickets == order.consumers then
  return redis.error_reply('ERR MAPS must name two different keys')
end
local is_taken = {}
for i = 1, 8 do
  if is_taken[KEYS[i]] then
    return redis.error_reply('ERR MAPS must not name the stream or another key of the group')
  end
  is_taken[KEYS[i]] = true
end

local row = read_settings(order)
local wrong = row and row.err and row or nil
local pending = redis.pcall('XPENDING', order.stream, order.group, '-', '+', 1)
wrong = wrong or (pending.err and pending) or read_sizes(order)
if not wrong and chosen.layout == 'list' then
  local probe = redis.pcall('EXISTS', lane_of(order, '')) -- Not declared: a server that minds says so here.
  wrong = type(probe) == 'table' and probe or nil
end
if wrong then
  return wrong
end

local before, is_other = {}, not row
for name, value in pairs(chosen) do
  before[name] = redis.call('HGET', order.order, name)
  is_other = is_other or (before[name] ~= value and not CHOICES[name:upper()] and not NUMBERS[name:upper()])
end
is_other = is_other or before.layout ~= chosen.layout
for name, value in pairs(chosen) do
  if before[name] ~= value then
    redis.call('HSET', order.order, name, value)
  end
end
if is_other then
  begin_rebuild(order)
  for name in pairs({tickets = true, consumers = true}) do
    if before[name] and before[name] ~= chosen[name] then
      redis.pcall('UNLINK', before[name]) -- Not declared: left lying where that is refused.
    end
  end
end
return redis.status_reply('OK')
