-- What the steps of workers share: who holds an entry, and how often it was tried.
--
-- Beside a stream and a group lie (client/worker_keys.py has the names):
--
--   due        sorted set: ID of a pending entry -> when it is tried again, in ms
--   attempts   hash: ID -> 'count', a blank and the deliveries it had then, a line break and the last error; all but
--              the count may be missing. The deliveries tell a step that is repeated after a lost answer from one that
--              follows another delivery.
--
-- A consumer holds an entry that is pending with it. IDs are compared as the server writes them.

local MOST = 1000 -- IDs in one call, so that none keeps the server for long. Lua's stack takes about 8000 words.
local PAGE = 1000
local MOST_WORDS = 7000 -- Of an entry, for the same reason.
local LAST_MS = 2 ^ 53 -- Times are scores: doubles, exact up to here.
local DASH = ('-'):byte()
local HIGHEST = '18446744073709551615'
local INVALID_ID = 'ERR Invalid stream ID specified as stream command argument'
local TOO_MANY = 'ERR at most 1000 IDs are possible in one call'
local SYNTAX = 'ERR syntax error'
local NOT_AN_INTEGER = 'ERR value is not an integer or out of range'

-- What a dead letter tells besides the entry's own fields.
local STORY = {
  ['hr:stream'] = true, ['hr:id'] = true, ['hr:group'] = true, ['hr:attempts'] = true, ['hr:error'] = true,
  ['hr:traceback'] = true, ['hr:at'] = true,
}

local function now_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- A whole number within bounds that doubles keep exactly; nil: it is none.
local function whole_number(text, least, most)
  local number = (text:find('^[1-9]%d*$') or text == '0') and #text <= 16 and tonumber(text)
  return number and number >= least and number <= most and number or nil
end

-- IDs

local function plain_part(digits)
  digits = digits:gsub('^[ \t\n\v\f\r]*%+?', ''):match('^0*(%d+)$')
  if digits and (#digits < 20 or (#digits == 20 and digits <= HIGHEST)) then
    return digits
  end
end

-- An ID as the server writes it; nil: it is none.
local function plain_id(id)
  local dash = id:find('-', 1, true)
  local first = plain_part(dash and id:sub(1, dash - 1) or id)
  local second = dash and plain_part(id:sub(dash + 1)) or not dash and '0'
  return first and second and first .. '-' .. second or nil
end

-- Whether one ID is lower than another, both as the server writes them. What is no ID is lower than all.
local function is_lower(one, other)
  local dash, other_dash = one:find('-', 1, true) or 0, other:find('-', 1, true)
  if dash ~= other_dash then
    return dash < other_dash
  elseif #one == #other then
    return one < other
  end
  local first, other_first = one:sub(1, dash), other:sub(1, dash)
  if first ~= other_first then
    return first < other_first
  end
  return #one < #other
end

-- The IDs among the words from one place to another; the lowest and the highest of them. Nil: one is none.
-- IDs of the same shape as the one before are looked at closer only when they are not held: nearly all are.
local function read_ids(words, from, to)
  local ids, low, high, size, dash = {}, nil, nil, 0, 0
  for i = from, to do
    local id = words[i]
    if #id == size and id:byte(dash) == DASH then
      if id > high then
        high = id
      elseif is_lower(id, low) then
        low = id
      end
    else
      if #id > 40 or not id:find('^[1-9]%d*%-%d+$') then
        id = plain_id(id)
        if not id then
          return nil
        end
      end
      low = (not low or is_lower(id, low)) and id or low
      high = (not high or is_lower(high, id)) and id or high
      size, dash = #high, high:find('-', 1, true)
    end
    ids[i - from + 1] = id
  end
  return ids, low, high
end

-- Holding

-- What the consumer has pending between two IDs: ID -> deliveries. An error: the key is something else. Then, when these
-- are the IDs given, in the same order: how many.
local function find_pending(key, group, consumer, low, high, ids)
  local held, from, size, is_same = {}, low, 0, ids ~= nil
  while from do
    local rows = redis.pcall('XPENDING', key, group, from, high, PAGE, consumer)
    if rows.err then
      return held, not rows.err:find('^NOGROUP') and rows or nil
    end
    for i = 1, #rows do
      local id = rows[i][1]
      held[id] = rows[i][4]
      is_same = is_same and id == ids[size + i]
    end
    size = size + #rows
    from = #rows == PAGE and '(' .. rows[PAGE][1] or nil
  end
  return held, nil, is_same and size or nil
end

-- The IDs among the words from one place to another, as the server writes them; which of them the consumer holds (and
-- maybe others); an error instead. Then, when the consumer holds all of them, in this order, and nothing between them: the
-- lowest and the highest. That is what a batch looks like.
local function open_ids(key, group, consumer, words, from, to)
  if to - from >= MOST then
    return nil, nil, redis.error_reply(TOO_MANY)
  end
  local ids, low, high = read_ids(words, from, to)
  if not ids then
    return nil, nil, redis.error_reply(INVALID_ID)
  end
  local held, wrong, pending = find_pending(key, group, consumer, low, high, ids)
  if wrong or pending == #ids then
    return ids, held, wrong, not wrong and low or nil, high
  end
  for i = 1, #ids do
    if not held[ids[i]] then
      ids[i] = plain_id(ids[i])
      if not ids[i] then
        return nil, nil, redis.error_reply(INVALID_ID)
      end
    end
  end
  return ids, held
end

-- For steps called with group, consumer, id…: the IDs, and which of them are held; or an error.
local function open_step(key, words)
  if #words < 3 then
    return nil, nil, redis.error_reply('ERR wrong number of arguments')
  end
  local ids, held, wrong = open_ids(key, words[1], words[2], words, 3, #words)
  return ids, held, wrong
end

-- Whether there are records at all. An error: a key of another type.
local function find_records(due, attempts)
  if redis.call('EXISTS', due, attempts) == 0 then
    return false
  end
  local size = redis.pcall('ZCARD', due)
  if type(size) == 'number' then
    size = redis.pcall('HLEN', attempts)
  end
  return true, type(size) == 'table' and size or nil
end

-- Attempts

-- 0 for what is none: anybody may have written to the hash.
local function read_number(digits)
  return digits:find('^%d+$') and #digits <= 15 and tonumber(digits) or 0
end

local function read_attempts(record)
  local numbers, last_error = record:match('^([^\n]*)\n?(.*)$')
  local count, deliveries = numbers:match('^([^ ]*) ?(.*)$')
  return read_number(count), read_number(deliveries), last_error
end

local function write_attempts(count, deliveries, last_error)
  local record = ('%.0f'):format(count)
  if deliveries > 0 then
    record = record .. ' ' .. ('%.0f'):format(deliveries)
  end
  return last_error ~= '' and record .. '\n' .. last_error or record
end
