-- Named locks, and the waiters for them.

-- part: names
-- Named locks. A lock lives as long as its session. If the session has expired or ended, another lock client may take the lock.
--   named            by name: fence,since, length of the session id, then the session id and the token
--   held:<session>   names of the locks that the session holds, by fence
--   line:<name>      tokens of the lock waiters, in the order of their first requests
--   places:<name>    by token: the time until which its place is kept, and its session
--   lined:<session>  places of the session in lines: length of the name, then the name and the token
-- LOOKED_AT: the first places of a line that are checked for lapsed places and dead sessions. Places further back all count as valid.
-- Sweeps and the requests of the waiters in front remove invalid places.
local LOOKED_AT = 200

-- The lines as this call has read them, by name: the size of the part that is looked at, the number of waiters in it, before each of its
-- tokens too, and its lapsed places.
local lines = {}

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
  local line = lines[name]
  if not line or line.size >= LOOKED_AT then return end
  line.before[token] = line.count
  line.size, line.count = line.size + 1, line.count + 1
end

local function leavePlace(name, token, session)
  lines[name] = nil
  call('ZREM', key('line:' .. name), token)
  call('HDEL', key('places:' .. name), token)
  call('ZREM', key('lined:' .. session), #name .. ',' .. name .. token)
  tidy(session)
end

-- Returns the session of a place in line; nil if there is no place. A lapsed place is removed.
local function keptPlace(name, token)
  local text = call('HGET', key('places:' .. name), token)
  if not text then return nil end
  local keptUntil, session = placeOf(text)
  if keptUntil > now then return session end
  leavePlace(name, token, session)
end

local function readLine(name, waiters)
  local tokens = call('ZRANGE', waiters, 0, LOOKED_AT - 1)
  local texts = fetch(key('places:' .. name), tokens)
  local line = { size = #tokens, count = 0, before = {}, lapsed = {} }
  for i = 1, #tokens do
    line.before[tokens[i]] = line.count
    local keptUntil, session = placeOf(texts[i] or '0,')
    if keptUntil <= now then
      line.lapsed[#line.lapsed + 1] = { tokens[i], session }
    elseif isLiving(session) then
      line.count = line.count + 1
    end
  end
  lines[name] = line
  return line
end

-- Returns the number of waiters in line, and the lapsed places, which do not count; the caller may remove them. If `token` is given and
-- has a place, only waiters before it count. The place of an expired session does not count until the session is renewed.
local function countLine(name, token)
  local line = key('line:' .. name)
  local known = lines[name] or readLine(name, line)
  local count, lapsed = token and known.before[token] or known.count, known.lapsed
  known.lapsed = {}
  if known.size < LOOKED_AT or token and known.before[token] then return count, lapsed end
  local rank = token and call('ZRANK', line, token)
  return count + (rank or call('ZCARD', line)) - LOOKED_AT, lapsed
end

-- Releases up to `limit` named locks and places in line of a session. Returns how many it released.
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

-- name: acquire
-- use: clock tools counters queue jobs locks ending expiry reassure names
-- Grants named locks, or a place in line for them.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: for each request: name, token, session, keepPlaceMs (0: keep no place in line).
-- Returns for each request a list:
--   h fence            held: the token owns the lock
--   t ahead endsInMs   taken: `ahead` lock waiters come first; the owner's session lives endsInMs at most ('': no living owner)
--   g                  gone: the session of the request has ended or expired

local function acquire(name, token, session, keepPlaceMs)
  if not isLiving(session) then return { 'g' } end
  reassure(session)
  local holder = holdOf(name)
  local living = holder and isLiving(holder.session)
  if living and holder.token == token then return { 'h', holder.fence } end
  local place = keptPlace(name, token)
  local ahead, lapsed = countLine(name, place and token)
  for i = 1, #lapsed do leavePlace(name, lapsed[i][1], lapsed[i][2]) end
  if not living and ahead == 0 then
    if holder then
      -- End the former owner's session: a late renewal would revive it, and the former owner would trust its lock again.
      endSession(holder.session, 1)
      lines = {}
      drop(name, holder.session)
    end
    if place then leavePlace(name, token, place) end
    return { 'h', hold(name, session, token) }
  end
  if keepPlaceMs ~= '0' then
    if place then keepPlace(name, token, place, keepPlaceMs) else enterLine(name, token, session, keepPlaceMs) end
  elseif place then
    leavePlace(name, token, place)
    namesFreed = true
  end
  return { 't', ahead, living and ceil(openSession(holder.session).expires - now) or '' }
end

local replies = {}
for at = 1, #ARGV, 4 do replies[#replies + 1] = acquire(ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]) end
save()
return replies

-- name: let-go
-- use: clock tools counters queue jobs locks names
-- Releases named locks, and places in line for them.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: for each lock: name, token.
-- Returns for each lock 1 if the token held it or had a place in line, else 0.

local replies = {}
for at = 1, #ARGV, 2 do
  local name, token = ARGV[at], ARGV[at + 1]
  local holder, place = holdOf(name), keptPlace(name, token)
  local holds = holder and holder.token == token
  if holds then drop(name, holder.session) end
  if place then leavePlace(name, token, place) end
  -- Wake the lock waiters: the first one in line may take the lock now.
  if holds or place then namesFreed = true end
  replies[#replies + 1] = (holds or place) and 1 or 0
end
save()
return replies

-- name: named-locks
-- use: clock tools counters queue jobs locks names
-- Reads named locks and their owners.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: names.
-- Returns for each lock: token, fence, session, since, endsInMs, number of lock waiters, and host, pid, name, instance of the owner;
-- 0 if the lock has no owner.

local replies = {}
for i = 1, #ARGV do
  local holder = holdOf(ARGV[i])
  replies[i] = 0
  if holder then
    local expires, ended, host, pid, name, instance =
      unpack(call('HMGET', key('s:' .. holder.session), 'expires', 'ended', 'host', 'pid', 'name', 'instance'))
    expires = tonumber(expires) or 0
    -- If the session has ended, the lock is dead, even if its expiry lies ahead.
    local endsInMs = floor((ended and math.min(expires, now) or expires) - now)
    local waiting = countLine(ARGV[i])
    replies[i] = { holder.token, holder.fence, holder.session, holder.since, endsInMs, waiting, host, pid, name, instance }
  end
end
return replies
