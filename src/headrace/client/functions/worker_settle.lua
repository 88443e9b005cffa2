-- HR.SETTLE: what became of entries: acknowledged, to be tried again, or buried.
--
-- KEYS   stream, due, attempts, dead, then every stream and key that a clause names
-- ARGV   group, consumer, KEEP or nothing, clause…
--
--   ACK n id… [EFFECT n word…]… [ADD stream FIELDS n word…]…
--                                      done; with effects or adds: all of it, or nothing when one id is not held
--   RETRY id delay-ms attempt error    stays pending
--   BURY id error traceback attempt    to the dead letters, and done
--
-- reply  per id 1, or 0 when the consumer does not hold it
--
-- Three passes: read the clauses, check everything, then do it. What is done is deleted once no group needs it, unless
-- KEEP is given.

local BAD_COUNT = 'ERR ACK must be followed by the number of its IDs, 1 or more, and by as many IDs'
local BAD_FIELDS = 'ERR FIELDS must be followed by an even number, 2 to 7000, and by as many words'
local BAD_DELAY = 'ERR the delay of RETRY is not a number of milliseconds'
local BAD_ATTEMPT = 'ERR the attempt is not a positive number'
local LONGEST_DELAY_MS = 2 ^ 52
local FEW_TO_CUT = 8 -- Fewer are deleted one by one.

local key, due, attempts, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local group, consumer = ARGV[1], ARGV[2]
local keeps = ARGV[3] and ARGV[3]:upper() == 'KEEP'

-- Reading

local words = {} -- All IDs in the order given.
local clauses, targets, has_bury, has_effects = {}, {}, false, false

local function new_clause(verb, from, count)
  local clause = {verb = verb, first = #words + 1, last = #words + count}
  for i = from, from + count - 1 do
    words[#words + 1] = ARGV[i]
  end
  clauses[#clauses + 1] = clause
  return clause
end

-- Each reads one word and what belongs to it: the place behind it, or the error.
local readers = {}

function readers.ACK(at, left)
  local count = left >= 1 and whole_number(ARGV[at + 1], 1, left - 1)
  if not count then
    return nil, left >= 1 and BAD_COUNT or SYNTAX
  end
  new_clause('ACK', at + 2, count)
  return at + 2 + count
end

function readers.RETRY(at, left)
  if left < 4 then
    return nil, SYNTAX
  end
  local clause = new_clause('RETRY', at + 1, 1)
  clause.delay_ms = whole_number(ARGV[at + 2], 0, LONGEST_DELAY_MS)
  clause.attempt, clause.error = whole_number(ARGV[at + 3], 1, 2 ^ 31), ARGV[at + 4]
  if not clause.delay_ms or not clause.attempt then
    return nil, not clause.delay_ms and BAD_DELAY or BAD_ATTEMPT
  end
  return at + 5
end

function readers.BURY(at, left)
  if left < 4 then
    return nil, SYNTAX
  end
  local clause = new_clause('BURY', at + 1, 1)
  clause.error, clause.traceback, clause.attempt = ARGV[at + 2], ARGV[at + 3], whole_number(ARGV[at + 4], 1, 2 ^ 31)
  has_bury = true
  if not clause.attempt then
    return nil, BAD_ATTEMPT
  end
  return at + 5
end

function readers.ADD(at, left)
  local clause = clauses[#clauses]
  if left < 3 or not clause or clause.verb ~= 'ACK' or ARGV[at + 2]:upper() ~= 'FIELDS' then
    return nil, SYNTAX
  end
  local count = whole_number(ARGV[at + 3], 2, math.min(left - 3, MOST_WORDS))
  if not count or count % 2 == 1 then
    return nil, BAD_FIELDS
  end
  clause.adds = clause.adds or {}
  clause.adds[#clause.adds + 1] = {ARGV[at + 1], at + 4, at + 3 + count}
  targets[ARGV[at + 1]] = true
  return at + 4 + count
end

function readers.EFFECT(at, left)
  local clause = clauses[#clauses]
  if left < 1 or not clause or clause.verb ~= 'ACK' then
    return nil, SYNTAX
  end
  local effect, refused = read_effect(ARGV, at + 1, left - 1)
  if not effect then
    return nil, refused
  end
  has_effects = true
  clause.effects = clause.effects or {}
  clause.effects[#clause.effects + 1] = effect
  return at + 2 + #effect
end

local at = keeps and 4 or 3
while at <= #ARGV do
  local read = readers[ARGV[at]:upper()]
  local behind, refused
  if read then
    behind, refused = read(at, #ARGV - at)
  end
  if not behind then
    return redis.error_reply(refused or SYNTAX)
  end
  at = behind
end
if #clauses == 0 then
  return redis.error_reply(SYNTAX)
end

-- Checking

local has_records, wrong = find_records(due, attempts)
if wrong then
  return wrong
end
if has_bury then
  targets[dead] = true
end
for target in pairs(targets) do
  local size = redis.pcall('XLEN', target)
  if type(size) == 'table' then
    return size
  end
end
local ids, held, low, high
ids, held, low, high, wrong = open_ids(key, group, consumer, words, 1, #words)
if wrong then
  return wrong
end

local reply, settled = {}, {}
for _, clause in ipairs(clauses) do
  local first, last, missing = clause.first, clause.last, false
  for i = first, last do
    reply[i] = held[ids[i]] and 1 or 0
    if reply[i] == 1 then
      held[ids[i]] = nil -- Each once.
    else
      missing = true
    end
  end
  clause.happens = reply[first] == 1
  if missing and (clause.adds or clause.effects) then
    clause.happens = false
    for i = first, last do
      held[ids[i]] = held[ids[i]] or reply[i] == 1 or nil
      reply[i] = 0
    end
  end
end

if has_effects then
  local own, foresight = {[key] = true, [due] = true, [attempts] = true, [dead] = true}, new_foresight()
  for _, clause in ipairs(clauses) do
    for _, effect in ipairs(clause.happens and clause.effects or {}) do
      local refused = (own[effect[2]] or targets[effect[2]]) and OWN_KEY or check_effect(foresight, effect)
      if refused then
        return redis.error_reply(refused)
      end
    end
  end
end

-- Doing

local function retry(clause, id)
  redis.call('ZADD', due, ('%.0f'):format(now_ms() + clause.delay_ms), id)
  redis.call('HSET', attempts, id, write_attempts(clause.attempt, 0, clause.error))
end

-- The entry's own fields, then its story. Stream and ID are those of the first entry, through any number of replays.
-- Of an entry with too many fields for Lua the first ones are kept, and the error says so.
local function bury(clause, id)
  local fields, origin = {}, {['hr:stream'] = key, ['hr:id'] = id}
  local entry = redis.call('XRANGE', key, id, id)[1]
  local size = entry and #entry[2] or 0
  if size > MOST_WORDS then
    clause.error = ('%s (only %d of its %d fields could be kept)'):format(clause.error, MOST_WORDS / 2, size / 2)
  end
  for i = 1, math.min(size, MOST_WORDS), 2 do
    local name, value = entry[2][i], entry[2][i + 1]
    if origin[name] then
      origin[name] = value
    elseif not STORY[name] then
      fields[#fields + 1] = name
      fields[#fields + 1] = value
    end
  end
  for _, word in ipairs({
    'hr:stream', origin['hr:stream'], 'hr:id', origin['hr:id'], 'hr:group', group, 'hr:attempts',
    ('%.0f'):format(clause.attempt), 'hr:error', clause.error, 'hr:traceback', clause.traceback, 'hr:at', ('%.0f'):format(now_ms()),
  }) do
    fields[#fields + 1] = word
  end
  redis.call('XADD', dead, '*', unpack(fields))
end

for _, clause in ipairs(clauses) do
  if clause.verb == 'RETRY' and reply[clause.first] == 1 then
    retry(clause, ids[clause.first])
    has_records = true
  elseif clause.verb ~= 'RETRY' then
    if clause.verb == 'BURY' and reply[clause.first] == 1 then
      bury(clause, ids[clause.first])
    end
    for i = clause.first, clause.last do
      if reply[i] == 1 then
        settled[#settled + 1] = ids[i]
      end
    end
    for _, effect in ipairs(clause.happens and clause.effects or {}) do
      redis.call(unpack(effect))
    end
    for _, add in ipairs(clause.happens and clause.adds or {}) do
      redis.call('XADD', add[1], '*', unpack(ARGV, add[2], add[3]))
    end
  end
end
if #settled == 0 then
  return reply
end
redis.call('XACK', key, group, unpack(settled))
if has_records then
  redis.call('ZREM', due, unpack(settled))
  redis.call('HDEL', attempts, unpack(settled))
end
if keeps then
  return reply
end

-- Deleting what no group needs: each has been given it and has it not pending.

local function without(kept, is_needed)
  local others = {}
  for _, id in ipairs(kept) do
    if not is_needed(id) then
      others[#others + 1] = id
    end
  end
  return others
end

-- What another group has pending among these. Of a few neighbours all are asked for at once.
local function pending_in(name)
  local rows = redis.call('XPENDING', key, name, low, high, 2 * #settled + 10)
  if #rows == 2 * #settled + 10 then
    return function(id)
      return #redis.call('XPENDING', key, name, id, id, 1) > 0
    end
  end
  local pending = {}
  for _, row in ipairs(rows) do
    pending[row[1]] = true
  end
  return function(id)
    return pending[id]
  end
end

-- Where to cut the stream when these are its oldest entries: then one XTRIM removes them, where XDEL would walk through a
-- node for each of them and take most of the time of this step (bench/worker.py). Nil: they may not be.
--
-- They are the oldest when no group has anything else up to the highest of them, and when there are no other entries
-- that the group was given and has not pending: all less those it was not given (its lag) and its pending ones.
local function place_to_cut(unneeded, groups)
  local milliseconds, sequence = high:match('^(%d+)%-(%d+)$')
  if #unneeded < FEW_TO_CUT or #unneeded < #ids or #sequence > 15 then
    return nil
  end
  local others
  for _, facts in ipairs(groups) do
    if facts.pending > 0 and not is_lower(high, redis.call('XPENDING', key, facts.name)[2]) then
      return nil
    elseif facts.name == group and facts.lag then
      others = facts.lag + facts.pending
    end
  end
  if others and redis.call('XLEN', key) - others == #unneeded then
    return ('%s-%.0f'):format(milliseconds, sequence + 1)
  end
end

local unneeded, groups = settled, {}
for i, row in ipairs(redis.call('XINFO', 'GROUPS', key)) do
  local facts = {}
  for j = 1, #row, 2 do
    facts[row[j]] = row[j + 1]
  end
  groups[i] = facts
  local last = facts['last-delivered-id']
  if is_lower(last, high) then
    unneeded = without(unneeded, function(id)
      return is_lower(last, id)
    end)
  end
  if facts.name ~= group and facts.pending > 0 and #unneeded > 0 then
    unneeded = without(unneeded, pending_in(facts.name))
  end
end
local cut = place_to_cut(unneeded, groups)
if cut then
  redis.call('XTRIM', key, 'MINID', '=', cut)
elseif #unneeded > 0 then
  redis.call('XDEL', key, unpack(unneeded))
end
return reply
