-- LANE.SETTLE: what became of the messages of keys.
--
-- KEYS   those of every step, then every stream and key that a clause names
-- ARGV   group, KEEP or nothing, clause…
--
--   DONE key fence n id… [EFFECT n word…]… [ADD stream FIELDS n word…]…   the first n messages of the key are done
--   FAIL key fence id delay-ms error                                      the first one failed: the key waits
--   BURY key fence id error traceback                                     the first one goes to the dead letters
--   PARK key fence error                                                  the key stands still
--   BACK key fence                                                        given back; the attempt does not count
--
-- reply  per clause 1, or 0 when the key is not held under that fence or the IDs are not its first ones
--
-- Three passes: read the clauses, check everything, then do it. What is done is deleted once no group needs it, unless
-- KEEP is given.

local BAD_COUNT = 'ERR DONE must be followed by a key, its fence, the number of IDs, 1 or more, and as many IDs'
local BAD_DELAY = 'ERR the delay of FAIL is not a number of milliseconds'
local TWICE = 'ERR one clause per key is possible in one call'

local order, wrong = open_order(KEYS, ARGV, 2)
if wrong then
  return wrong
end
local keeps = ARGV[2]:upper() == 'KEEP'

-- Reading

local clauses, keys, targets, size, has_bury = {}, {}, {}, 0, false

-- Words behind the key and the fence: of DONE at least the number of IDs.
local WORDS = {DONE = 2, FAIL = 3, BURY = 3, PARK = 1, BACK = 0}

local function read_clause(verb, at, left)
  if left < 2 + WORDS[verb] then
    return nil, SYNTAX
  end
  local key, fence = ARGV[at + 1], ARGV[at + 2]
  local clause, first, last = {verb = verb, key = key, fence = fence}, at + 3, at + 3
  if verb == 'DONE' then
    local count = whole_number(ARGV[at + 3], 1, left - 3)
    if not count then
      return nil, BAD_COUNT
    end
    first, last = at + 4, at + 3 + count
  elseif verb == 'FAIL' then
    clause.delay_ms, clause.error = whole_number(ARGV[at + 4], 0, 2 ^ 52), ARGV[at + 5]
    if not clause.delay_ms then
      return nil, BAD_DELAY
    end
  elseif verb == 'BURY' then
    clause.error, clause.traceback, has_bury = ARGV[at + 4], ARGV[at + 5], true
  elseif verb == 'PARK' then
    clause.error = ARGV[at + 3]
  end
  if verb == 'PARK' or verb == 'BACK' then
    clause.ids, size = {}, size + 1
  else
    clause.ids, size = read_ids(ARGV, first, last), size + last - first + 1
  end
  if not clause.ids then
    return nil, INVALID_ID
  end
  clauses[#clauses + 1], keys[#keys + 1] = clause, key
  return verb == 'DONE' and last + 1 or at + 3 + WORDS[verb]
end

local readers = {DONE = read_clause, FAIL = read_clause, BURY = read_clause, PARK = read_clause, BACK = read_clause}
local refused = read_clauses(clauses, targets, ARGV, keeps and 3 or 2, readers, 'DONE')
if refused then
  return redis.error_reply(refused)
elseif size > MOST then
  return redis.error_reply(TOO_MANY)
end

-- Checking

local own, is_seen = set_of({unpack(KEYS, 1, 8)}), {}
local lane_start = order.lane_start
for _, key in ipairs(keys) do
  if is_seen[key] then
    return redis.error_reply(TWICE)
  end
  is_seen[key] = true
end
for target in pairs(targets) do
  if own[target] and target ~= order.stream and target ~= order.dead or target:sub(1, #lane_start) == lane_start then
    return redis.error_reply(OWN_KEY)
  end
end
if has_bury then
  targets[order.dead] = true
end
wrong = find_wrong_target(targets)
if wrong then
  return wrong
end

-- Whether the IDs are the first ones of those that the holder was given.
local function are_first(clause, head)
  for i = 1, #clause.ids do
    local id = clause.ids[i]
    if head[i] ~= id then
      id = plain_id(id)
      if not id then
        return nil
      elseif head[i] ~= id then
        return false
      end
      clause.ids[i] = id
    end
  end
  return #clause.ids <= clause.ticket.given
end

local tickets, reply = read_tickets(order, keys), {}
for i, clause in ipairs(clauses) do
  local ticket = tickets[i]
  local is_held = ticket and ticket.state == 'held' and ticket.fence == clause.fence
  clause.ticket = is_held and ticket or {given = 0}
  clause.head = is_held and lane_head(order, clause.key, ticket.given + 1) or {}
  local is_right = are_first(clause, clause.head)
  if is_right == nil then
    return redis.error_reply(INVALID_ID)
  end
  clause.happens = is_held and is_right
  reply[i] = clause.happens and 1 or 0
end
refused = check_effects(clauses, targets, function(name)
  return own[name] or name:sub(1, #lane_start) == lane_start
end)
if refused then
  return redis.error_reply(refused)
end

-- Doing

-- Nobody holds them any more.
local function release(clause, from)
  for i = from, math.min(#clause.head, clause.ticket.given) do
    order.freed[#order.freed + 1] = clause.head[i]
  end
end

local function finish(clause)
  local ticket, count = clause.ticket, #clause.ids
  if count == ticket.given then
    go_on(order, clause.key, clause.head, count)
    return
  end
  lane_shift(order, clause.key, clause.head, count, false)
  set_held(order, clause.key, 1, ticket.fence, ticket.until_text, ticket.given - count, ticket.consumer)
end

local verbs = {}

function verbs.DONE(clause)
  do_belongings(clause, ARGV)
  for _, id in ipairs(clause.ids) do
    order.settled[#order.settled + 1] = id
  end
  finish(clause)
end

function verbs.BURY(clause)
  bury(order, clause.ids[1], clause.ticket.attempts, clause.error, clause.traceback)
  finish(clause)
end

function verbs.FAIL(clause)
  local attempts = clause.ticket.attempts
  if not is_exhausted(order, attempts) then
    release(clause, 1)
    set_waiting(order, clause.key, attempts, order.now + clause.delay_ms, clause.error)
  else
    release(clause, order.poison == 'skip' and 2 or 1)
    poison(order, clause.key, attempts, clause.error)
  end
end

function verbs.PARK(clause)
  release(clause, 1)
  set_parked(order, clause.key, clause.ticket.attempts, clause.error)
end

local back_keys, back_tickets = {}, {}

function verbs.BACK(clause)
  back_keys[#back_keys + 1], back_tickets[#back_tickets + 1] = clause.key, clause.ticket
end

for _, clause in ipairs(clauses) do
  if clause.happens then
    verbs[clause.verb](clause)
  end
end
free_held(order, back_keys, back_tickets, false)
flush(order, keeps)
return reply
