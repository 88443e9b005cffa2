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
local BAD_DELAY = 'ERR the delay of RETRY is not a number of milliseconds'
local BAD_ATTEMPT = 'ERR the attempt is not a positive number'
local LONGEST_DELAY_MS = 2 ^ 52

local key, due, attempts, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local group, consumer = ARGV[1], ARGV[2]
local keeps = ARGV[3] and ARGV[3]:upper() == 'KEEP'

-- Reading

local words = {} -- All IDs in the order given.
local clauses, targets, has_bury = {}, {}, false

local function new_clause(verb, from, count)
  local before = #words
  local clause = {verb = verb, first = before + 1, last = before + count}
  for i = 1, count do
    words[before + i] = ARGV[from + i - 1]
  end
  clauses[#clauses + 1] = clause
  return clause
end

local readers = {}

function readers.ACK(_, at, left)
  local count = left >= 1 and whole_number(ARGV[at + 1], 1, left - 1)
  if not count then
    return nil, left >= 1 and BAD_COUNT or SYNTAX
  end
  new_clause('ACK', at + 2, count)
  return at + 2 + count
end

function readers.RETRY(_, at, left)
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

function readers.BURY(_, at, left)
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

local refused = read_clauses(clauses, targets, ARGV, keeps and 4 or 3, readers, 'ACK')
if refused then
  return redis.error_reply(refused)
end

-- Checking

local has_records, wrong = find_records(due, attempts)
if wrong then
  return wrong
end
if has_bury then
  targets[dead] = true
end
wrong = find_wrong_target(targets)
if wrong then
  return wrong
end
local ids, held, wrong_id, low, high = open_ids(key, group, consumer, words, 1, #words)
if wrong_id then
  return wrong_id
end

local reply = {}
for _, clause in ipairs(clauses) do
  local first, last, missing = clause.first, clause.last, false
  for i = first, last do
    local id = ids[i]
    if low then -- A batch: all are held, each once.
      reply[i] = 1
    elseif held[id] then
      reply[i] = 1
      held[id] = nil -- Each once.
    else
      reply[i] = 0
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

refused = check_effects(clauses, targets, function(name)
  return name == key or name == due or name == attempts or name == dead
end)
if refused then
  return redis.error_reply(refused)
end

-- Doing

local function retry(clause, id)
  redis.call('ZADD', due, ('%.0f'):format(now_ms() + clause.delay_ms), id)
  redis.call('HSET', attempts, id, write_attempts(clause.attempt, 0, clause.error))
end

local settled, count = {}, 0
for _, clause in ipairs(clauses) do
  if clause.verb == 'RETRY' and reply[clause.first] == 1 then
    retry(clause, ids[clause.first])
    has_records = true
  elseif clause.verb ~= 'RETRY' then
    if clause.verb == 'BURY' and reply[clause.first] == 1 then
      bury_entry(key, group, dead, ids[clause.first], clause.attempt, clause.error, clause.traceback)
    end
    for i = clause.first, clause.last do
      if reply[i] == 1 then
        count = count + 1
        settled[count] = ids[i]
      end
    end
    do_belongings(clause, ARGV)
  end
end
if count == 0 then
  return reply
end
redis.call('XACK', key, group, unpack(settled))
if has_records then
  redis.call('ZREM', due, unpack(settled))
  redis.call('HDEL', attempts, unpack(settled))
end
if not keeps then
  delete_unneeded(key, group, settled, count == #ids and low or nil, high)
end
return reply
