-- Effects: write commands that happen together with an acknowledgement.
--
-- Only commands on one key whose success can be told beforehand: the key's type, and the numbers. So that this holds for
-- several effects on one key too, they are of one type, and DEL stands alone. `check_effect` looks ahead over all
-- effects of a step; after it none of them can fail. commands/hr_effects.py has the same rules.

local MOST_EFFECT_WORDS = 1000 -- Of one effect.
local LARGEST = 2 ^ 53 - 1 -- Numbers that are added to, and what is added: doubles are exact up to here.
local BAD_EFFECT = 'ERR EFFECT must be followed by the number of its words, 2 to 1000, and by as many words'
local OVERFLOW = 'ERR increment or decrement would overflow'
local ONE_TYPE = 'ERR the effects on one key must be of one type, and DEL stands alone'
local OWN_KEY = 'ERR an effect must not name a key that the step itself uses'
local WRONG_TYPE = 'WRONGTYPE Operation against a key holding the wrong kind of value'
local NOT_A_FLOAT = 'ERR value is not a valid float'
local ANY = ''

-- The type of the key; how many words; how many words may follow, any number of times.
local RULES = {
  SET = {'string', 3, 0}, SETNX = {'string', 3, 0}, INCR = {'string', 2, 0}, DECR = {'string', 2, 0},
  INCRBY = {'string', 3, 0}, DECRBY = {'string', 3, 0}, HSET = {'hash', 4, 2}, HSETNX = {'hash', 4, 0},
  HDEL = {'hash', 3, 1}, HINCRBY = {'hash', 4, 0}, SADD = {'set', 3, 1}, SREM = {'set', 3, 1}, ZADD = {'zset', 4, 2},
  ZINCRBY = {'zset', 4, 0}, ZREM = {'zset', 3, 1}, LPUSH = {'list', 3, 1}, RPUSH = {'list', 3, 1}, DEL = {ANY, 2, 0},
  PERSIST = {ANY, 2, 0}, PEXPIRE = {ANY, 3, 0},
}

-- The effect whose number of words stands at a place; nil and why not.
local function read_effect(words, at, left)
  local count = whole_number(words[at], 2, math.min(left, MOST_EFFECT_WORDS))
  if not count then
    return nil, BAD_EFFECT
  end
  local effect = {unpack(words, at + 1, at + count)}
  effect[1] = effect[1]:upper()
  local rule = RULES[effect[1]]
  if not rule then
    local known = {}
    for name in pairs(RULES) do
      known[#known + 1] = name
    end
    table.sort(known)
    return nil, 'ERR EFFECT cannot be ' .. effect[1]:sub(1, 64) .. '; possible are ' .. table.concat(known, ', ')
  end
  local more = count - rule[2]
  if more < 0 or (more > 0 and (rule[3] == 0 or more % rule[3] ~= 0)) then
    return nil, 'ERR wrong number of words for EFFECT ' .. effect[1]
  end
  return effect
end

-- A whole number of 64 bits as Redis reads it: as a number, not exact beyond LARGEST. Nil: it is none.
local function integer(text)
  local digits = text:match('^%-?([1-9]%d*)$') or text:match('^0$')
  if not digits or #digits > 19 or (#digits == 19 and digits > '9223372036854775807') then
    return text == '-9223372036854775808' and -2 ^ 63 or nil
  end
  return tonumber(text)
end

-- What a number will be; nil and why it cannot be.
local function add(before, amount, not_a_number)
  local number = before and integer(before) or 0
  if before and not integer(before) then
    return nil, not_a_number
  elseif math.abs(number) > LARGEST or math.abs(amount) > LARGEST or math.abs(number + amount) > LARGEST then
    return nil, OVERFLOW
  end
  return ('%.0f'):format(number + amount)
end

local checks = {}

function checks.string(foresight, effect)
  local name, key = effect[1], effect[2]
  local now = foresight.strings[key] or redis.call('GET', key)
  if name == 'SET' or (name == 'SETNX' and not now) then
    foresight.strings[key] = effect[3]
  elseif name ~= 'SETNX' then
    local amount = effect[3] and integer(effect[3]) or not effect[3] and 1
    if not amount then
      return NOT_AN_INTEGER
    end
    local after, refused = add(now, name:sub(1, 4) == 'DECR' and -amount or amount, NOT_AN_INTEGER)
    if refused then
      return refused
    end
    foresight.strings[key] = after
  end
end

function checks.hash(foresight, effect)
  local name, key, field = effect[1], effect[2], effect[3]
  local known = foresight.fields[key] or {}
  foresight.fields[key] = known
  if name == 'HDEL' then
    for i = 3, #effect do
      known[effect[i]] = false
    end
  elseif name == 'HSET' then
    for i = 3, #effect, 2 do
      known[effect[i]] = effect[i + 1]
    end
  else
    local now = known[field]
    if now == nil then
      now = redis.call('HGET', key, field)
    end
    local after, refused = now or effect[4], nil
    if name == 'HINCRBY' then
      local amount = integer(effect[4])
      if not amount then
        return NOT_AN_INTEGER
      end
      after, refused = add(now, amount, 'ERR hash value is not an integer')
    end
    if refused then
      return refused
    end
    known[field] = after
  end
end

function checks.zset(_, effect)
  for i = 3, effect[1] ~= 'ZREM' and #effect or 0, 2 do
    local text = effect[i]
    local score = text:find('^[%d+%-.eE]*$') and #text <= 1100 and tonumber(text)
    if not score or (score == 0 and text:match('^[^eE]*'):find('[1-9]')) then
      return NOT_A_FLOAT
    elseif math.abs(score) > LARGEST then
      return math.abs(score) == math.huge and NOT_A_FLOAT or 'ERR a score is too large for an effect'
    end
  end
end

local function new_foresight()
  return {kinds = {}, strings = {}, fields = {}}
end

-- Why the effect could not happen behind those before it; nil: it can.
local function check_effect(foresight, effect)
  local name, key = effect[1], effect[2]
  local kind = name == 'DEL' and 'DEL' or RULES[name][1]
  local is_typed = kind ~= ANY and kind ~= 'DEL'
  if is_typed then
    local held = redis.call('TYPE', key).ok
    if held ~= 'none' and held ~= kind then
      return WRONG_TYPE
    end
  end
  local before = foresight.kinds[key]
  if before and (before == 'DEL' or kind == 'DEL' or (kind ~= before and kind ~= ANY and before ~= ANY)) then
    return ONE_TYPE
  end
  foresight.kinds[key] = kind ~= ANY and kind or before or ANY
  if name == 'PEXPIRE' then
    local ms = integer(effect[3])
    return not ms and NOT_AN_INTEGER or (ms < 1 or ms > LARGEST) and OVERFLOW or nil
  end
  return checks[kind] and checks[kind](foresight, effect)
end
