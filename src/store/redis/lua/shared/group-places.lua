-- Groups (see group-states.lua): `flush` puts the groups that were touched where they belong, and `write` writes their states. A group
-- that has nothing is not stored.
-- The pending writes by key of the sorted set.
local added, removed = { ring = {}, aside = {}, resting = {} }, { ring = {}, aside = {}, resting = {} }

local function put(place, score, one)
  local list = added[place]
  list[#list + 1], list[#list + 2] = digits(score), one.name
end

local function pull(place, one) table.insert(removed[place], one.name) end

local function where(one)
  if not one.number then return '' end
  if not groups.hasPlace(one) then return 'a' end
  return groups.restEnd(one) > now and 's' or 'r'
end

-- Workers are woken for a group that is in the ring now, unless this script claims until the group has no room again.
local function wake(one, to)
  if to == 'r' then
    turned = turned or {}
    turned['\0' .. one.name] = true
  elseif turned then
    turned['\0' .. one.name] = nil
  end
end

local function place(one)
  local before, to = one.at, where(one)
  local wasAside, isAside = before == 'a' or before == 's', to == 'a' or to == 's'
  if to == 'r' and (before ~= 'r' or one.placed ~= one.number) then put('ring', one.number, one) end
  if before == 'r' and to ~= 'r' then pull('ring', one) end
  if isAside and (one.isAgain or not wasAside) then put('aside', ticks(1), one) end
  if wasAside and not isAside then pull('aside', one) end
  if to == 's' then put('resting', groups.restEnd(one), one) end
  if before == 's' and to ~= 's' then pull('resting', one) end
  if to ~= before or one.comers then wake(one, to) end
  one.at, one.placed, one.isAgain = to, one.number, nil
end

function groups.flush()
  local list = groups.touched
  if #list == 0 then return end
  groups.touched = {}
  for i = 1, #list do
    local one = list[i]
    place(one)
    if one.comers then many('ZADD', key('members:' .. one.name), one.comers) end
    one.touched, one.comers = nil, nil
  end
  groups.flushLists()
  for name, members in pairs(removed) do
    many('ZREM', key(name), members)
    removed[name] = {}
  end
  for name, members in pairs(added) do
    many('ZADD', key(name), members)
    added[name] = {}
  end
end

local function textOf(one, hasSettings)
  local text = one.active .. ',' .. (one.number or '') .. ',' .. one.at
  if not hasSettings and one.blockedUntil <= now and one.windowEnds <= now then return text end
  return concat({
    text, one.maxActive, one.rateMax, one.rateMs, one.paused, digits(one.blockedUntil), digits(one.windowEnds), one.windowUsed,
  }, ',')
end

function groups.write()
  groups.flush()
  local texts, idle, new, gone = {}, {}, {}, {}
  for _, one in ipairs(groups.changed) do
    local hasSettings, opensAt = groups.hasSettings(one), math.max(one.blockedUntil, one.windowEnds)
    local isIdle = one.active == 0 and not one.number and not hasSettings
    if not isIdle or opensAt > now then
      texts[#texts + 1], texts[#texts + 2] = one.name, textOf(one, hasSettings)
      if not one.stored then new[#new + 1], new[#new + 2] = '0', one.name end
      if isIdle then idle[#idle + 1], idle[#idle + 2] = digits(opensAt), one.name end
    elseif one.stored then
      gone[#gone + 1] = one.name
    end
  end
  many('HSET', key('groups'), texts)
  many('ZADD', key('groupNames'), new)
  many('ZADD', key('idle'), idle)
  many('HDEL', key('groups'), gone)
  many('ZREM', key('groupNames'), gone)
end

atEnd = groups.write
