-- What the steps of streams and of queues share: the order of IDs, and rows of names and values.

local HIGHEST = '18446744073709551615'

-- IDs are two numbers of 64 bits, too large for Lua's doubles: they are compared as texts of 20 digits each.
local function padded(digits)
  digits = digits:gsub('^0+', '')
  return #digits <= 20 and ('0'):rep(20 - #digits) .. digits or nil
end

-- Nil: it is no ID.
local function order_of(id)
  local first, second = id:match('^(%d+)%-(%d+)$')
  first, second = padded(first or id:match('^%d+$') or HIGHEST .. '0'), padded(second or '0')
  if not first or not second or first > HIGHEST or second > HIGHEST then
    return nil
  end
  return first .. second
end

local function read_pairs(row)
  local named = {}
  for i = 1, #row, 2 do
    named[row[i]] = row[i + 1]
  end
  return named
end
