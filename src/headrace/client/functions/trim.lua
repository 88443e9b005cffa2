-- Remove the oldest entries of a stream, but none that a group still needs.
--
-- KEYS   stream
-- ARGV   MINID id, or MAXLEN n; then DRYRUN to change nothing
-- reply  [entries removed, or to be removed; the ID reached: lower ones go; the group that holds it back, or ""]
--
-- What a group needs begins with its lowest pending ID whose entry is still there, or else behind its
-- last-delivered-id. A group is named only when an entry that was meant to go is kept for it. The place of MAXLEN is
-- found from the nearer end, and a dry run counts what would go: the work grows with the entries passed over.

local PAGE = 100 -- Entries come with their fields, so a few at a time.
local LEAPS = 1000 -- After so many pending IDs without entry the next one counts as needed.

local function plus_one(digits)
  local head, nines = digits:match('^(%d-)(9*)$')
  if head == '' then
    return '1' .. ('0'):rep(#nines)
  end
  return head:sub(1, -2) .. string.char(head:byte(-1) + 1) .. ('0'):rep(#nines)
end

-- The next higher ID; none behind the highest.
local function next_of(id)
  local first, second = id:match('^(%d+)%-(%d+)$')
  if second ~= HIGHEST then
    return first .. '-' .. plus_one(second)
  end
  return first ~= HIGHEST and plus_one(first) .. '-0' or nil
end

local key, strategy = KEYS[1], ARGV[1]:upper()
local is_dry_run = #ARGV == 3 and ARGV[3]:upper() == 'DRYRUN'

local function first_in(from, to)
  local found = redis.call('XRANGE', key, from, to, 'COUNT', 1)
  return found[1] and found[1][1]
end

-- The ID of the nth entry from one end.
local function nth(command, from, to, n)
  local page
  repeat
    page = redis.call(command, key, from, to, 'COUNT', math.min(n, PAGE))
    n = n - #page
    from = '(' .. page[#page][1]
  until n == 0
  return page[#page][1]
end

local function count_below(id)
  local count, from = 0, '-'
  repeat
    local page = redis.call('XRANGE', key, from, '(' .. id, 'COUNT', PAGE)
    count = count + #page
    from = #page > 0 and '(' .. page[#page][1]
  until #page < PAGE
  return count
end

-- What is asked for.
local length = redis.pcall('XLEN', key)
if type(length) == 'table' then
  return length
end
local exists = redis.call('EXISTS', key) == 1
local wanted, surplus
if #ARGV ~= 2 and not is_dry_run then
  return redis.error_reply('ERR syntax error')
elseif strategy == 'MINID' then
  if not order_of(ARGV[2]) then
    return redis.error_reply('ERR Invalid stream ID specified as stream command argument')
  end
  wanted = ARGV[2]:find('-', 1, true) and ARGV[2] or ARGV[2] .. '-0'
elseif strategy == 'MAXLEN' then
  local most = ARGV[2]:match('^%d+$') and tonumber(ARGV[2])
  if not most then
    return redis.error_reply('ERR value is not an integer or out of range')
  end
  surplus = math.max(0, length - most)
  if not exists then
    wanted = '0-0'
  elseif most == 0 then
    local info = read_pairs(redis.call('XINFO', 'STREAM', key))
    wanted = next_of(info['last-generated-id']) or HIGHEST .. '-' .. HIGHEST
  elseif length == 0 then
    wanted = '0-0'
  elseif most < surplus then
    wanted = nth('XREVRANGE', '+', '-', most)
  else
    wanted = nth('XRANGE', '-', '+', surplus + 1)
  end
else
  return redis.error_reply('ERR syntax error')
end
if not exists then
  return {0, '0-0', ''}
end

-- What the groups need.
local function lowest_pending(group)
  local from = '-'
  for _ = 1, LEAPS do
    local row = redis.call('XPENDING', key, group, from, '+', 1)[1]
    local entry = row and first_in(row[1], '+')
    if not entry or entry == row[1] then
      return entry
    end
    from = entry -- The pending IDs below it have no entry any more.
  end
  local row = redis.call('XPENDING', key, group, from, '+', 1)[1]
  return row and row[1]
end

local least, slowest
for _, row in ipairs(redis.call('XINFO', 'GROUPS', key)) do
  local group = read_pairs(row)
  local needed = next_of(group['last-delivered-id'])
  local pending = group.pending > 0 and lowest_pending(group.name)
  if pending and (not needed or order_of(pending) < order_of(needed)) then
    needed = pending
  end
  if needed and (not least or order_of(needed) < order_of(least)) then
    least, slowest = needed, group.name
  end
end
local cut, holder = wanted, ''
if least and order_of(least) < order_of(wanted) then
  cut, holder = least, first_in(least, '(' .. wanted) and slowest or ''
end

local removed
if not is_dry_run then
  removed = redis.call('XTRIM', key, 'MINID', '=', cut)
elseif surplus and cut == wanted then
  removed = surplus
elseif order_of(cut) == order_of('0-0') then
  removed = 0
else
  removed = count_below(cut)
end
return {removed, cut, holder}
