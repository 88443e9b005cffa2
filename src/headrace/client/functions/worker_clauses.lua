-- What belongs to a clause that acknowledges: entries that are added and effects.
--
-- A clause is a table. `adds`: each {stream, first word, last word}, places among the words of the call; `effects`: each
-- the words of a command; `happens`: whether it is carried out.

local BAD_FIELDS = 'ERR FIELDS must be followed by an even number, 2 to 7000, and by as many words'

local belongings = {}

-- Each reads one word and what belongs to it into the clause: the place behind it, or the error.
function belongings.ADD(clause, targets, words, at, left)
  if left < 3 or words[at + 2]:upper() ~= 'FIELDS' then
    return nil, SYNTAX
  end
  local count = whole_number(words[at + 3], 2, math.min(left - 3, MOST_WORDS))
  if not count or count % 2 == 1 then
    return nil, BAD_FIELDS
  end
  clause.adds = clause.adds or {}
  clause.adds[#clause.adds + 1] = {words[at + 1], at + 4, at + 3 + count}
  targets[words[at + 1]] = true
  return at + 4 + count
end

function belongings.EFFECT(clause, _, words, at, left)
  if left < 1 then
    return nil, SYNTAX
  end
  local effect, refused = read_effect(words, at + 1, left - 1)
  if not effect then
    return nil, refused
  end
  clause.effects = clause.effects or {}
  clause.effects[#clause.effects + 1] = effect
  return at + 2 + #effect
end

-- Read all clauses from a place on: why they cannot be read, or nil. `readers` has a function for each verb, which adds a
-- clause: from the verb, its place and how many words are left to the place behind it, or the error. Behind clauses of
-- the verb `acknowledges` there may be belongings.
local function read_clauses(clauses, targets, words, at, readers, acknowledges)
  while at <= #words do
    local word, clause, left = words[at]:upper(), clauses[#clauses], #words - at
    local behind, refused
    if readers[word] then
      behind, refused = readers[word](word, at, left)
    elseif belongings[word] and clause and clause.verb == acknowledges then
      behind, refused = belongings[word](clause, targets, words, at, left)
    end
    if not behind then
      return refused or SYNTAX
    end
    at = behind
  end
  return #clauses == 0 and SYNTAX or nil
end

-- An error when one of the targets is no stream.
local function find_wrong_target(targets)
  for target in pairs(targets) do
    local size = redis.pcall('XLEN', target)
    if type(size) == 'table' then
      return size
    end
  end
end

-- Why one of the effects that are to happen could not; nil: all can.
local function check_effects(clauses, targets, is_own)
  local foresight = new_foresight()
  for _, clause in ipairs(clauses) do
    for _, effect in ipairs(clause.happens and clause.effects or {}) do
      local refused = (is_own(effect[2]) or targets[effect[2]]) and OWN_KEY or check_effect(foresight, effect)
      if refused then
        return refused
      end
    end
  end
end

local function do_belongings(clause, words)
  for _, effect in ipairs(clause.happens and clause.effects or {}) do
    redis.call(unpack(effect))
  end
  for _, add in ipairs(clause.happens and clause.adds or {}) do
    redis.call('XADD', add[1], '*', unpack(words, add[2], add[3]))
  end
end
