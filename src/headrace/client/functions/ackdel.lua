-- Acknowledge entries in one group, and delete those that no group needs any more.
--
-- KEYS   stream
-- ARGV   group, id…
-- reply  per id: -1 was not pending in this group, 1 acknowledged and deleted, 2 acknowledged and kept
--
-- A group needs an entry that it has not been given yet (its last-delivered-id is lower) or that is pending in it. A
-- group that is only a marker counts as any other. Without the stream or the group every id is -1, as for XACKDEL.

local PART = 1000 -- Words handed to one command; Lua's stack takes about 8000.

local key, group = KEYS[1], ARGV[1]

-- All are checked before anything changes.
for i = 2, #ARGV do
  if not order_of(ARGV[i]) then
    return redis.error_reply('ERR Invalid stream ID specified as stream command argument')
  end
end

local reply, acknowledged = {}, 0
for i = 2, #ARGV do
  local was_pending = redis.pcall('XACK', key, group, ARGV[i])
  if type(was_pending) == 'table' then
    return was_pending
  end
  reply[i - 1] = was_pending == 1 and 1 or -1
  acknowledged = acknowledged + was_pending
end
if acknowledged == 0 then
  return reply
end

local groups = {}
for i, row in ipairs(redis.call('XINFO', 'GROUPS', key)) do
  groups[i] = read_pairs(row)
  groups[i].order = order_of(groups[i]['last-delivered-id'])
end

local function is_needed(id)
  local order = order_of(id)
  for _, other in ipairs(groups) do
    if other.order < order then
      return true
    end
    if other.pending > 0 and #redis.call('XPENDING', key, other.name, id, id, 1) > 0 then
      return true
    end
  end
  return false
end

local unneeded = {}
for i = 2, #ARGV do
  if reply[i - 1] == 1 then
    local id = ARGV[i]:find('-', 1, true) and ARGV[i] or ARGV[i] .. '-0'
    if is_needed(id) then
      reply[i - 1] = 2
    else
      unneeded[#unneeded + 1] = id
    end
  end
end
for start = 1, #unneeded, PART do
  redis.call('XDEL', key, unpack(unneeded, start, math.min(start + PART - 1, #unneeded)))
end
return reply
