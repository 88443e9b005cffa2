-- What becomes of settled entries: a dead letter is written, and what no group needs any more is deleted.

local FEW_TO_CUT = 8 -- Fewer are deleted one by one,
local LARGE = 4096 -- and so are entries of more bytes.

-- The entry's own fields, then its story. Stream and ID are those of the first entry, through any number of replays.
-- Of an entry with too many fields for Lua the first ones are kept, and the error says so.
local function bury_entry(key, group, dead, id, attempt, error_text, traceback)
  local fields, origin = {}, {['hr:stream'] = key, ['hr:id'] = id}
  local entry = redis.call('XRANGE', key, id, id)[1]
  local size = entry and #entry[2] or 0
  if size > MOST_WORDS then
    error_text = ('%s (only %d of its %d fields could be kept)'):format(error_text, MOST_WORDS / 2, size / 2)
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
    ('%.0f'):format(attempt), 'hr:error', error_text, 'hr:traceback', traceback, 'hr:at', ('%.0f'):format(now_ms()),
  }) do
    fields[#fields + 1] = word
  end
  redis.call('XADD', dead, '*', unpack(fields))
end

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
local function pending_in(key, name, settled, low, high)
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

-- Whether these are all entries up to the highest of them. Large entries are not looked at: reading them would cost more
-- than it saves.
local function are_the_oldest(key, settled, high)
  local wanted, found, size = {}, 0, 0
  for i = 1, #settled do
    wanted[settled[i]] = true
  end
  local start, page = '-', FEW_TO_CUT
  while true do
    local rows = redis.call('XRANGE', key, start, high, 'COUNT', page)
    for i = 1, #rows do
      local row = rows[i]
      if not wanted[row[1]] then
        return false
      end
      size = size + #row[2][2] -- Its first value tells enough.
    end
    found = found + #rows
    if #rows < page then
      return found == #settled
    elseif size > found * LARGE then
      return false
    end
    start, page = '(' .. rows[#rows][1], 100
  end
end

-- Where to cut the stream when these are its oldest entries: then one XTRIM removes them, where XDEL would walk through a
-- node for each of them and take most of the time of the step (bench/worker.py). Nil: they may not be.
--
-- Numbers tell first whether it is likely: no group has anything else up to the highest of them, and there are no other
-- entries that the group was given and has not pending: all less those it was not given (its lag) and its pending ones.
local function place_to_cut(key, group, groups, settled, high)
  local milliseconds, sequence = high:match('^(%d+)%-(%d+)$')
  if #settled < FEW_TO_CUT or #sequence > 15 then
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
  if others and redis.call('XLEN', key) - others == #settled and are_the_oldest(key, settled, high) then
    return ('%s-%.0f'):format(milliseconds, sequence + 1)
  end
end

-- Delete what no group needs: each has been given it and has it not pending. This group has acknowledged them. The lowest
-- and the highest of them are looked for unless they are given.
local function delete_unneeded(key, group, settled, low, high)
  if not low then
    local _
    _, low, high = read_ids(settled, 1, #settled)
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
      unneeded = without(unneeded, pending_in(key, facts.name, settled, low, high))
    end
  end
  local cut = #unneeded == #settled and place_to_cut(key, group, groups, settled, high)
  if cut then
    redis.call('XTRIM', key, 'MINID', '=', cut)
  elseif #unneeded > 0 then
    redis.call('XDEL', key, unpack(unneeded))
  end
end
