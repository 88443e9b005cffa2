-- Lanes in two layouts: a list per key, or one sorted set for all of them where only declared keys may be used.
--
-- In the set a member is 'length:KEY:' and the place of the entry: its ID as 20 digits, a dash and 20 digits. One that
-- must come behind a higher ID has that one's place, '+' and its own. So the last 41 characters are always the ID, and
-- members of one key sort in the order of the lane.
--
-- A lane's beginning is a table of IDs; in the set, `members` beside it.

local ID_SIZE = 41
local ZEROS = ('0'):rep(20)

local function lane_of(order, key)
  return order.lane_start .. key
end

local function place_of(id)
  local dash = id:find('-', 1, true)
  local seq = id:sub(dash + 1)
  return ZEROS:sub(dash) .. id:sub(1, dash - 1) .. '-' .. ZEROS:sub(#seq + 1) .. seq
end

local function member_start(key)
  return #key .. ':' .. key .. ':'
end

local function id_of(member)
  local ms, seq = member:match('^0*(%d+)%-0*(%d+)$', #member - ID_SIZE + 1)
  return ms and ms .. '-' .. seq or member -- What somebody put there is no ID, so it is not pending.
end

local function read_members(members)
  local head = {members = members}
  for i = 1, #members do
    head[i] = id_of(members[i])
  end
  return head
end

-- The first so many IDs.
local function lane_head(order, key, count)
  if not order.is_set then
    local ids = redis.pcall('LRANGE', lane_of(order, key), '0', small_text(count - 1))
    return ids.err and {} or ids -- Something else has the lane's name: it is none.
  end
  local start = member_start(key)
  local last = '(' .. start .. '~'
  return read_members(redis.call('ZRANGEBYLEX', order.lanes, '[' .. start, last, 'LIMIT', '0', small_text(count)))
end

local function lane_length(order, key)
  if not order.is_set then
    local size = redis.pcall('LLEN', lane_of(order, key))
    return type(size) == 'number' and size or 0
  end
  local start = member_start(key)
  return redis.call('ZLEXCOUNT', order.lanes, '[' .. start, '(' .. start .. '~')
end

-- Take the first so many off a lane whose beginning is known. `is_all`: nothing else is in it.
local function lane_shift(order, key, head, count, is_all)
  if order.is_set then
    for i = 1, count do
      order.gone_members[#order.gone_members + 1] = head.members[i]
    end
  elseif is_all then
    order.empty_lanes[#order.empty_lanes + 1] = lane_of(order, key)
  elseif count > 0 then
    redis.call('LPOP', lane_of(order, key), small_text(count))
  end
end

-- Take single IDs out of a lane, at once.
local function lane_remove(order, key, head, is_gone)
  local members = {}
  for i, id in ipairs(head) do
    if is_gone[id] and order.is_set then
      members[#members + 1] = head.members[i]
    elseif is_gone[id] then
      redis.call('LREM', lane_of(order, key), 1, id)
    end
  end
  call_with(members, 'ZREM', order.lanes)
end

-- Putting into lanes

-- From the end: the last ID that is lower, no further than the first `given` ones; its place from 0 on, -1: none.
-- True behind it: the ID itself is there.
local function find_before(order, key, id, given)
  local size = redis.call('LLEN', lane_of(order, key))
  for to = size - 1, given, -PAGE do
    local from = math.max(to - PAGE + 1, given)
    local ids = redis.call('LRANGE', lane_of(order, key), from, to)
    for i = #ids, 1, -1 do
      if ids[i] == id or is_lower(ids[i], id) then
        return ids[i], ids[i] == id
      end
    end
  end
  return nil, false
end

local function insert_in_list(order, key, id, head)
  local lane, given = lane_of(order, key), #head
  local before, is_there = find_before(order, key, id, given)
  if is_there then
    return
  elseif before then
    redis.call('LINSERT', lane, 'AFTER', before, id)
  elseif given > 0 then
    redis.call('LINSERT', lane, 'AFTER', head[given], id)
  else
    redis.call('LPUSH', lane, id)
  end
end

local function insert_in_set(order, key, id, head)
  local start = member_start(key)
  local place = start .. place_of(id)
  local before = #head > 0 and head.members[#head] or ''
  local from, is_first = '[' .. start, true
  while from do
    local members = redis.call('ZRANGEBYLEX', order.lanes, from, '(' .. start .. '~', 'LIMIT', 0, PAGE)
    for i = is_first and #head + 1 or 1, #members do
      local other = id_of(members[i])
      if other == id then
        return
      elseif is_lower(other, id) and members[i] > before then
        before = members[i]
      end
    end
    from, is_first = #members == PAGE and '(' .. members[PAGE] or nil, false
  end
  redis.call('ZADD', order.lanes, 0, before >= place and before .. '+' .. place_of(id) or place)
end

-- Put an ID at its place, behind what its holder was given. True: it is one of those.
local function lane_insert(order, key, id, given)
  local head = given > 0 and lane_head(order, key, given) or {members = {}}
  for i = 1, #head do
    if head[i] == id then
      return true, i
    end
  end
  if order.is_set then
    insert_in_set(order, key, id, head)
  else
    insert_in_list(order, key, id, head)
  end
  return false
end

-- Put IDs, in rising order, behind all others. Nil: they do not belong there, and nothing was done. True: they are now
-- the whole lane.
local function lane_append(order, key, ids)
  if order.is_set then
    local start = member_start(key)
    local last = redis.call('ZREVRANGEBYLEX', order.lanes, '(' .. start .. '~', '[' .. start, 'LIMIT', 0, 1)[1]
    if last and last >= start .. place_of(ids[1]) then
      return nil
    end
    for _, id in ipairs(ids) do
      order.new_members[#order.new_members + 1] = 0
      order.new_members[#order.new_members + 1] = start .. place_of(id)
    end
    return not last
  end
  local lane = lane_of(order, key)
  local size = redis.pcall('RPUSH', lane, unpack(ids))
  if type(size) == 'table' then -- Of another type: none of ours.
    redis.call('UNLINK', lane)
    size = redis.call('RPUSH', lane, unpack(ids))
  end
  if size == #ids then
    return true
  elseif is_lower(redis.call('LINDEX', lane, -#ids - 1), ids[1]) then
    return false
  end
  redis.call('LTRIM', lane, 0, -#ids - 1)
  return nil
end
