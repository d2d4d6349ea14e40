-- Named locks. A lock lives as long as its session: whoever finds one whose session has expired or ended may have it.
--   named            by name: fence,since, the length of the session's id, the id and the token
--   held:<session>   names that it holds, by fence
--   line:<name>      tokens that wait for it, in the order of their first wishes
--   places:<name>    by token: until when its place is kept, and its session
--   lined:<session>  its places in lines: the length of the name, the name and the token
-- How far a line is looked into for places that have lapsed or whose sessions are dead; behind that, all count. Sweeps and the looks of
-- those in front clear them away.
local LOOKED_AT = 200

local function isLiving(id)
  local session = openSession(id)
  return session and session.expires > now
end

local function holdOf(name)
  local text = call('HGET', key('named'), name)
  if not text then return nil end
  local fence, since, length, rest = match(text, '^(%d+),(%d+),(%d+),(.*)$')
  return { fence = fence, since = since, session = rest:sub(1, length), token = rest:sub(length + 1) }
end

local function hold(name, session, token)
  local fence = digits(ticks(1))
  call('HSET', key('named'), name, concat({ fence, digits(floor(now)), #session, session .. token }, ','))
  call('ZADD', key('held:' .. session), fence, name)
  return fence
end

local function drop(name, session)
  call('HDEL', key('named'), name)
  call('ZREM', key('held:' .. session), name)
  tidy(session)
end

local function placeOf(text)
  local keptUntil, session = match(text, '^(%d+),(.*)$')
  return tonumber(keptUntil), session
end

local function keepPlace(name, token, session, keepPlaceMs)
  call('HSET', key('places:' .. name), token, digits(ceil(now + keepPlaceMs)) .. ',' .. session)
end

local function enterLine(name, token, session, keepPlaceMs)
  local tick = digits(ticks(1))
  call('ZADD', key('line:' .. name), tick, token)
  call('ZADD', key('lined:' .. session), tick, #name .. ',' .. name .. token)
  keepPlace(name, token, session, keepPlaceMs)
end

local function leavePlace(name, token, session)
  call('ZREM', key('line:' .. name), token)
  call('HDEL', key('places:' .. name), token)
  call('ZREM', key('lined:' .. session), #name .. ',' .. name .. token)
  tidy(session)
end

-- The session of a place that has not lapsed.
local function keptPlace(name, token)
  local text = call('HGET', key('places:' .. name), token)
  if not text then return nil end
  local keptUntil, session = placeOf(text)
  if keptUntil > now then return session end
  leavePlace(name, token, session)
end

-- How many stand in line, before `token` if it is given and has a place. Places that have lapsed are lost; that of a session that
-- has expired does not count until it is renewed.
local function countLine(name, token)
  local line, count = key('line:' .. name), 0
  local tokens = call('ZRANGE', line, 0, LOOKED_AT - 1)
  local texts = fetch(key('places:' .. name), tokens)
  local lapsed = {}
  for i = 1, #tokens do
    if tokens[i] == token then return count, lapsed end
    local keptUntil, session = placeOf(texts[i] or '0,')
    if keptUntil <= now then
      lapsed[#lapsed + 1] = { tokens[i], session }
    elseif isLiving(session) then
      count = count + 1
    end
  end
  if #tokens < LOOKED_AT then return count, lapsed end
  local rank = token and call('ZRANK', line, token)
  return count + (rank or call('ZCARD', line)) - LOOKED_AT, lapsed
end

-- Up to `limit` of what a session holds and waits for; answers how many.
local function freeNames(session, limit)
  if limit <= 0 then return 0 end
  local names = call('ZRANGE', key('held:' .. session), 0, limit - 1)
  many('HDEL', key('named'), names)
  many('ZREM', key('held:' .. session), names)
  local freed = #names
  if freed < limit then
    local places = call('ZRANGE', key('lined:' .. session), 0, limit - freed - 1)
    for i = 1, #places do
      local length, rest = match(places[i], '^(%d+),(.*)$')
      local name, token = rest:sub(1, length), rest:sub(length + 1)
      call('ZREM', key('line:' .. name), token)
      call('HDEL', key('places:' .. name), token)
    end
    many('ZREM', key('lined:' .. session), places)
    freed = freed + #places
  end
  if freed > 0 then namesFreed = true end
  return freed
end
