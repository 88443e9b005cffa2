-- How entries come into their lanes.

local MOST_HELD_PAGES = 10 -- Of a consumer's pending entries that are looked at; keys beyond wait for their lease's end.
local LARGEST_WHOLE = 2 ^ 53

-- Fields of the layout that say something about the entry. Beside `data` they are not looked at.
local LAYOUT_FIELDS = {data = true, id = true, type = true, traceparent = true, tracestate = true}

-- Keys

local function member_text(value)
  local kind = type(value)
  if kind == 'string' then
    return value ~= '' and value or nil
  elseif kind == 'number' and value == math.floor(value) and math.abs(value) < LARGEST_WHOLE then
    return value == 0 and '0' or text_of(value)
  end
  return kind == 'boolean' and tostring(value) or nil
end

local function read_object(data)
  if not data:find('^[ \t\r\n]*{') then
    return {}
  end
  local is_json, object = pcall(cjson.decode, data)
  return is_json and type(object) == 'table' and object or {}
end

-- The key of an entry; nil: it has none.
local function key_of(order, fields)
  local found, data, object
  for i = 1, #fields, 2 do
    local name = fields[i]
    if order.wanted[name] then
      found = found or {}
      found[name] = found[name] or fields[i + 1]
    end
    if name == 'data' then
      data = data or fields[i + 1]
    end
  end
  for _, name in ipairs(order.names) do
    local value = found and found[name]
    if value and value ~= '' and not (data and LAYOUT_FIELDS[name]) then
      return value
    elseif data then
      object = object or read_object(data)
      value = member_text(object[name])
      if value then
        return value
      end
    end
  end
end

-- Lanes

-- What is known of tickets in this call: ticket or false by key.
local function learn_tickets(order, keys)
  local asked, unknown = {}, {}
  for _, key in ipairs(keys) do
    if order.known[key] == nil and not asked[key] then
      asked[key] = true
      unknown[#unknown + 1] = key
    end
  end
  local tickets = read_tickets(order, unknown)
  for i, key in ipairs(unknown) do
    order.known[key] = tickets[i]
  end
end

local function put_in_place(order, key, ids)
  local ticket = order.known[key]
  local is_held = ticket and ticket.state == 'held'
  for _, id in ipairs(ids) do
    local is_given, place = lane_insert(order, key, id, is_held and ticket.given or 0)
    if is_given then -- It was read again: back to its holder.
      claim(order, ticket.consumer, {id}, 'RETRYCOUNT', place == 1 and text_of(ticket.attempts) or '1', 'JUSTID')
      order.is_loose[id] = nil
    end
  end
end

local function bury_keyless(order, id)
  bury(order, id, 0, 'no key: the message has none of ' .. table.concat(order.names, ', '), '')
end

-- Put entries into their lanes; the keys that had no ticket, in the order they came. `whole` then has all IDs of lanes
-- that are known in full.
local function ingest(order, entries)
  local keys, ids_of, fresh = {}, {}, {}
  for _, entry in ipairs(entries) do
    local id = entry[1]
    local key = key_of(order, entry[2]) or order.keyless ~= 'dead' and 'id:' .. id
    if not key then
      bury_keyless(order, id)
      order.is_loose[id] = nil
    elseif ids_of[key] then
      ids_of[key][#ids_of[key] + 1] = id
    else
      keys[#keys + 1] = key
      ids_of[key] = {id}
    end
  end
  learn_tickets(order, keys)
  for _, key in ipairs(keys) do
    local ids, ticket = ids_of[key], order.known[key]
    local is_whole = lane_append(order, key, ids)
    if is_whole == nil then
      put_in_place(order, key, ids)
      order.whole[key] = nil
    elseif is_whole then
      order.whole[key] = ids
    elseif order.whole[key] then
      for _, id in ipairs(ids) do
        order.whole[key][#order.whole[key] + 1] = id
      end
    end
    if not ticket or ticket.damaged then
      order.known[key] = FRESH
      fresh[#fresh + 1] = key
    end
  end
  call_with(order.new_members, 'ZADD', order.lanes)
  order.new_members = {}
  return fresh
end

-- Entries that were read and are in no lane yet: those pending with the reader.
local function ingest_strays(order)
  if #order.strays == 0 then
    return
  end
  local ids = {}
  for i, row in ipairs(order.strays) do
    ids[i] = row[1]
  end
  order.is_loose = {}
  for _, key in ipairs(ingest(order, claim(order, LANES, ids, 'RETRYCOUNT', 1))) do
    set_ready(order, key, 0, '', 'back')
  end
end

-- The keys that a consumer holds, lowest entry first, and their tickets.
local function find_held(order, consumer)
  local keys, tickets, is_seen, from = {}, {}, {}, '-'
  for _ = 1, MOST_HELD_PAGES do
    local rows = redis.call('XPENDING', order.stream, order.group, from, '+', PAGE, consumer)
    local page = {}
    for _, row in ipairs(rows) do
      local entry = redis.call('XRANGE', order.stream, row[1], row[1])[1]
      local key = entry and (key_of(order, entry[2]) or 'id:' .. row[1])
      if key and not is_seen[key] then
        is_seen[key] = true
        page[#page + 1] = key
      end
    end
    for i, ticket in ipairs(read_tickets(order, page)) do
      if ticket and ticket.state == 'held' and ticket.consumer == consumer then
        keys[#keys + 1] = page[i]
        tickets[#tickets + 1] = ticket
      end
    end
    if #rows < PAGE then
      break
    end
    from = '(' .. rows[PAGE][1]
  end
  return keys, tickets
end

-- Rebuilding

-- All lists that the tickets of a map name. Under other key fields their IDs may belong to other lanes.
local function delete_lists(order, tickets)
  local cursor = '0'
  repeat
    local page = redis.pcall('HSCAN', tickets, cursor, 'COUNT', PAGE)
    if page.err then
      return
    end
    local lists = {}
    for i = 1, #page[2], 2 do
      lists[#lists + 1] = lane_of(order, page[2][i])
    end
    for from = 1, #lists, PART do
      redis.call('UNLINK', unpack(lists, from, math.min(from + PART - 1, #lists)))
    end
    cursor = page[1]
  until cursor == '0'
end

local function begin_rebuild(order)
  if not order.is_set then
    delete_lists(order, order.saved_tickets or order.tickets)
  end
  redis.call('UNLINK', order.tickets, order.ready, order['until'], order.lanes)
  redis.call('HSET', order.order, 'rebuild', '0-0')
  order.rebuild = '0-0'
end

-- One page of all that is pending: each entry into its lane, in the order of IDs. The first one of a key begins anew.
local function rebuild_page(order)
  local rows = redis.call('XPENDING', order.stream, order.group, '(' .. order.rebuild, '+', PAGE)
  local ids = {}
  for i, row in ipairs(rows) do
    ids[i] = row[1]
  end
  order.is_loose = {}
  local entries, keys = claim(order, LANES, ids, 'RETRYCOUNT', 1), {}
  for i, entry in ipairs(entries) do
    keys[i] = key_of(order, entry[2]) or 'id:' .. entry[1]
  end
  learn_tickets(order, keys)
  for _, key in ipairs(order.is_set and {} or keys) do
    if not order.known[key] then
      order.empty_lanes[#order.empty_lanes + 1] = lane_of(order, key)
    end
  end
  flush(order)
  for _, key in ipairs(ingest(order, entries)) do
    set_ready(order, key, 0, '', 'back')
  end
  flush(order)
  if #rows < PAGE then
    redis.call('HDEL', order.order, 'rebuild')
  else
    redis.call('HSET', order.order, 'rebuild', rows[PAGE][1])
  end
end
