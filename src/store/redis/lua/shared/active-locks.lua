-- Reads active jobs by fence. The locks are sorted by fence within each session; `locksAfter` merges all sessions.
-- A call reads about LOOKED_AT locks, however many exist.
local LOOKED_AT = 1000

-- Returns the locks (id and fence) that follow the fence `after` ('': from the beginning), and whether there are more.
local function locksAfter(after, ascending)
  local sets = {}
  for _, session in ipairs(call('SMEMBERS', key('holders'))) do
    sets[#sets + 1] = key('bound:' .. session)
    sets[#sets + 1] = key('ending:' .. session)
  end
  local function comesBefore(a, b)
    if ascending then return a.fence < b.fence end
    return a.fence > b.fence
  end
  local command, from, to = 'ZRANGEBYSCORE', '-inf', '+inf'
  if not ascending then command, from, to = 'ZREVRANGEBYSCORE', '+inf', '-inf' end
  if after ~= '' then from = '(' .. after end
  local each = ceil(LOOKED_AT / math.max(1, #sets)) + 1
  -- horizon: the earliest last lock that was read from a set with more locks. The unread locks of that set may come before locks of
  -- other sets behind the horizon. So this call returns nothing behind the horizon; the next call does.
  local found, horizon = {}, nil
  for i = 1, #sets do
    local part = call(command, sets[i], from, to, 'WITHSCORES', 'LIMIT', 0, each)
    for j = 1, #part, 2 do found[#found + 1] = { id = part[j], fence = tonumber(part[j + 1]) } end
    if #part == 2 * each then
      local last = found[#found]
      if not horizon or comesBefore(last, horizon) then horizon = last end
    end
  end
  table.sort(found, comesBefore)
  while horizon and comesBefore(horizon, found[#found]) do found[#found] = nil end
  return found, horizon ~= nil
end
