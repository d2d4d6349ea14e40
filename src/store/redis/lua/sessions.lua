-- Sessions: opening, renewing, closing, and the suspicion that their owners are dead.

-- part: expiry
-- Sets the expiry of a session, in both places: in the index `sessions`, where sweeps find it, and in the session, where claims read it.
local function expireAt(id, ms)
  call('ZADD', key('sessions'), ms, id)
  call('HSET', key('s:' .. id), 'expires', ms)
end

local function clearSuspicion(id)
  call('HDEL', key('s:' .. id), 'suspected', 'presence')
  call('SREM', key('suspects'), id)
end

local function shorten(id, ms)
  if tonumber(call('HGET', key('s:' .. id), 'expires')) > ms then expireAt(id, ms) end
end

-- part: ending
-- Ends sessions. An ended session neither renews nor claims. `close-session` or any sweep hands back its locks in batches. `reaped`
-- lists the ended sessions that still have locks to hand back.
local CALL_REMEMBERED_MS = 15 * 60 * 1000

-- how: 0: the locks are handed back and do not count as stalls; 1: they count, a sweep or a new owner found the session dead;
-- EXITED: they count, and the session owner itself reported its exit.
local EXITED = '2'
local function endSession(id, how)
  local session = openSession(id)
  call('ZREM', key('sessions'), id)
  if not session then return end
  sessions[id] = false
  call('HDEL', key('presence'), id)
  call('SREM', key('suspects'), id)
  call('HDEL', key('slots'), id)
  call('HSET', key('s:' .. id), 'ended', how)
  call('ZADD', key('reaped'), session.expires, id)
  -- Keep the results of the last settle of each lane: the caller may still repeat that call.
  for lane, last in pairs(session.calls) do
    if last.callSeq then
      call('SET', key('call' .. lane .. ':' .. id), last.callSeq .. ',' .. last.results, 'PX', CALL_REMEMBERED_MS)
    end
  end
  -- Under a cap, other sessions may take the share of this one: wake them.
  if queue.cap > 0 then offer() end
end

-- part: sessions
-- Hands back the locks of ended sessions, for sweep.lua and `close-session`.
local owners = {}
local function ownerOf(session)
  local owner = owners[session]
  if not owner then
    local limit, ended, host, pid, name, suspected =
      unpack(call('HMGET', key('s:' .. session), 'maxStalls', 'ended', 'host', 'pid', 'name', 'suspected'))
    owner = { stalls = tonumber(limit) or 0, countsStall = ended ~= '0', suspected = suspected, found = ended == EXITED and 'exit' }
    if host then
      owner.prefix = '{"host":' .. cjson.encode(host) .. ',"pid":' .. pid .. ',"worker":' .. cjson.encode(name) .. ',"found":"'
    end
    owners[session] = owner
  end
  return owner
end

-- Returns the jobs of lock entries in the set `holder`. An entry without a job (a user deleted keys, or Redis evicted them) is removed:
-- otherwise every sweep would find it again.
local function heldIn(holder, ids)
  local jobs = jobsOf(ids)
  for i = 1, #jobs do jobs[i].fence = tonumber(fenceOf(jobs[i].token)) end
  if #jobs < #ids then
    local found = {}
    for i = 1, #jobs do found[jobs[i].id] = true end
    for i = 1, #ids do
      if not found[ids[i]] then call('ZREM', holder, ids[i]) end
    end
  end
  return jobs
end

local function byFence(a, b) return a.fence < b.fence end

-- Hands back jobs. If a session owner closed its session, its jobs just wait again; the jobs of other sessions stall.
local function handBack(jobs)
  local stalled, closed = {}, {}
  table.sort(jobs, byFence)
  for i = 1, #jobs do
    local list = ownerOf(sessionOf(jobs[i].token)).countsStall and stalled or closed
    list[#list + 1] = jobs[i]
  end
  giveBack(closed)
  return stall(stalled, ownerOf)
end

-- part: reassure
-- Clears the suspicion of a session that is granted a lock: the request shows that its owner lives. Otherwise the owner would trust a
-- lock that ends early. If the connection is really gone, the next suspicion check suspects the session again, with a new grace period.
local function reassure(id)
  local session = openSession(id)
  if not session.suspected then return end
  session.expires = tonumber(session.suspected)
  expireAt(id, session.suspected)
  call('HSET', key('presence'), id, call('HGET', key('s:' .. id), 'presence'))
  clearSuspicion(id)
  session.suspected = false
end

-- part: suspects
-- Returns the ms until the first suspected session ends, 0 if it has ended, -1 if no session is suspected.
local function firstEnd()
  local suspects, first = call('SMEMBERS', key('suspects')), nil
  for from = 1, #suspects, AT_ONCE do
    local ends = call('ZMSCORE', key('sessions'), unpack(suspects, from, math.min(from + AT_ONCE - 1, #suspects)))
    for i = 1, #ends do
      local at = ends[i] and tonumber(ends[i])
      if at and (not first or at < first) then first = at end
    end
  end
  return first and math.max(0, ceil(first - now)) or -1
end

-- name: open-session
-- use: clock tools expiry
-- Opens a session. Its id must be new: a repeated id is an error.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: id, host, pid, name, durationMs, maxStalls, presence ('': no crash hint), instance, slots, graceMs.

local id = ARGV[1]
local own = key('s:' .. id)
if call('EXISTS', own) == 1 then
  return { err = 'HOLDFAST Session ' .. id .. ' was opened before: give every session an id of its own.' }
end
call('HSET', own, 'host', ARGV[2], 'pid', ARGV[3], 'name', ARGV[4], 'duration', ARGV[5], 'maxStalls', ARGV[6],
  'instance', ARGV[8], 'grace', ARGV[10], 'since', floor(now), 'renewals', 0, 'seq', 0, 'revoked', 0)
expireAt(id, ceil(now + ARGV[5]))
call('SADD', key('holders'), id)
call('HSET', key('slots'), id, ARGV[9])
if ARGV[7] ~= '' then call('HSET', key('presence'), id, ARGV[7]) end
return 1

-- name: renew
-- use: clock tools counters queue expiry
-- Renews sessions. A renewal writes the same few fields, however many locks the session holds, and never revives an ended session.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: presence ('': no crash hint), then for each session: id, acked (number of the last notice that the owner has
--   processed), slots ('': unchanged).
-- Returns for each session 0 if it has ended, else its notices (see `notices` in change.lua): each is number, job id, fence and reason with
-- NUL between, and NUL c behind those of cancelled jobs.
-- noticed: the number of the last notice. lastAcked: of the last one that earlier renewals have acked.

local function noticesOf(id, acked, noticed, lastAcked)
  local revoked, cancelled = key('revoked:' .. id), key('cancelled:' .. id)
  local known = math.min(tonumber(acked), tonumber(noticed))
  if known > tonumber(lastAcked or 0) then call('HSET', key('s:' .. id), 'acked', known) end
  call('ZREMRANGEBYSCORE', revoked, '-inf', acked)
  call('ZREMRANGEBYSCORE', cancelled, '-inf', acked)
  local list = call('ZRANGE', revoked, 0, -1)
  for _, notice in ipairs(call('ZRANGE', cancelled, 0, -1)) do list[#list + 1] = notice .. '\0c' end
  return list
end

local replies = {}
for at = 2, #ARGV, 3 do
  local id, acked, slots = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local own = key('s:' .. id)
  local duration, ended, noticed, suspected, lastAcked =
    unpack(call('HMGET', own, 'duration', 'ended', 'revoked', 'suspected', 'acked'))
  if not duration or ended then
    replies[#replies + 1] = 0
  else
    expireAt(id, ceil(now + duration))
    call('HINCRBY', own, 'renewals', 1)
    -- The connection that renews a session vouches for it from now on: suspicion checks look for this connection.
    if ARGV[1] == '' then call('HDEL', key('presence'), id) else call('HSET', key('presence'), id, ARGV[1]) end
    if suspected then clearSuspicion(id) end
    if slots ~= '' and call('HGET', key('slots'), id) ~= slots then
      call('HSET', key('slots'), id, slots)
      if queue.cap > 0 then offer() end
    end
    -- Notices that the owner has acked are gone.
    replies[#replies + 1] = (noticed == '0' or noticed == lastAcked) and {} or noticesOf(id, acked, noticed, lastAcked)
  end
end
save()
return replies

-- name: check-sessions
-- use: clock tools
-- Checks sessions for suspicion, and for notices that their owners have not processed.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: ids of sessions.
-- Returns for each session the sum of 1 if it is open, has not expired and is not suspected, and 2 if it has a notice.

local replies = {}
for i = 1, #ARGV do
  local expires, ended, suspected, noticed, acked =
    unpack(call('HMGET', key('s:' .. ARGV[i]), 'expires', 'ended', 'suspected', 'revoked', 'acked'))
  replies[i] = expires and not ended and not suspected and tonumber(expires) > now and 1 or 0
  if tonumber(noticed or 0) > tonumber(acked or 0) then replies[i] = replies[i] + 2 end
end
return replies

-- name: close-session
-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks marking families entries schedules metrics locks leave ending retention failing hand-back sessions names
-- Ends a session at its owner's request and hands back all its locks, at most BITE per call.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: id of the session, crashed (1: each job handed back counts as a stall).
-- Returns 1 if the session still holds locks (call again), else 0. If the script has sent messages: a list of this and the receiving
-- queues.

local id, crashed, BITE = ARGV[1], ARGV[2] == '1', 100
local own, bound, ending = key('s:' .. id), key('bound:' .. ARGV[1]), key('ending:' .. ARGV[1])
if call('EXISTS', own) == 0 then return 0 end
endSession(id, crashed and EXITED or '0')
local owner = ownerOf(id)
-- A sweep may have ended the session before; the owner's own statement takes precedence over the sweep's.
owner.countsStall, owner.found = crashed, 'exit'
-- Hand back the newest locks first. Later calls put older jobs in front of them, so the oldest job ends up first.
local jobs = heldIn(bound, call('ZREVRANGE', bound, 0, BITE - 1))
if #jobs < BITE then
  local others = heldIn(ending, call('ZREVRANGE', ending, 0, BITE - #jobs - 1))
  for i = 1, #others do jobs[#jobs + 1] = others[i] end
end
handBack(jobs)
freeNames(id, BITE - #jobs)
tidy(id)
flushPlaces()
tellLosses()
save()
local left = call('EXISTS', own)
return receivers() and { left, unpack(receivers()) } or left

-- name: sessions
-- use: clock tools
-- Lists the open sessions by expiry, one page per call.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: position to start from, the sessions to return at most.
-- Returns for each session: id, expiresInMs, host, pid, name, durationMs, since, renewals, suspected (1 or 0), number of job locks,
-- instance, slots.

local replies = {}
local open = call('ZRANGE', key('sessions'), ARGV[1], ARGV[1] + ARGV[2] - 1, 'WITHSCORES')
for i = 1, #open, 2 do
  local id = open[i]
  local host, pid, name, duration, since, renewals, suspected, instance =
    unpack(call('HMGET', key('s:' .. id), 'host', 'pid', 'name', 'duration', 'since', 'renewals', 'suspected', 'instance'))
  local locks = call('ZCARD', key('bound:' .. id)) + call('ZCARD', key('ending:' .. id))
  local expiresInMs = floor(open[i + 1] - now)
  local slots = call('HGET', key('slots'), id)
  replies[#replies + 1] =
    { id, expiresInMs, host, pid, name, duration, since, renewals, suspected and 1 or 0, locks, instance, slots }
end
return replies

-- name: present
-- use: clock tools expiry
-- Moves sessions from a lost connection to the new connection of the same process (crash hint: see presence.ts).
-- KEYS: tag, the hash tag of the queue.
-- ARGV: before, the lost connection; presence, the new connection; then ids of sessions.
-- If a session was suspected meanwhile, it gets its former expiry back.
-- If another connection has renewed a session since, the script leaves that session alone.

for i = 3, #ARGV do
  local id = ARGV[i]
  local own = key('s:' .. id)
  local ended, expires, presence = unpack(call('HMGET', own, 'ended', 'suspected', 'presence'))
  if not expires then presence = call('HGET', key('presence'), id) end
  if not ended and presence == ARGV[1] then
    call('HSET', key('presence'), id, ARGV[2])
    if expires then
      expireAt(id, expires)
      clearSuspicion(id)
    end
  end
end
return 1

-- name: probe
-- use: clock tools suspects
-- Starts a suspicion check.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: none.
-- Returns the number of open sessions, the ms until the first suspected session ends (-1: none is suspected), and the connections that
-- vouch for unsuspected sessions, for the caller to check. That list is empty if another call got it within EVERY_MS: so the
-- connections of a queue are checked at most twice a second, however many workers probe. The next item is 1 if a schedule is owing or
-- messages of the queue wait, else 0. The last item lists queues that children of waiting parents are in. Both are left out if not needed.
-- KIN_ASKED: the queues that one probe asks for messages, at most.

local EVERY_MS, KIN_ASKED = 500, 20
local sessions, due = call('ZCARD', key('sessions')), firstEnd()
-- EXISTS counts a key as often as it is named, so one command asks for all.
local owing, outbox, kin = key('owing'), key('outbox'), key('kin')
local there = call('EXISTS', key('presence'), owing, owing, outbox, outbox, kin, kin, kin, kin, kin, kin)
local ours = there % 2 == 1 and call('SET', key('probed'), 1, 'NX', 'PX', EVERY_MS)
local reply = { sessions, due, ours and call('HVALS', key('presence')) or {}, nil, nil }
if there > 1 then reply[4] = there % 6 > 1 and 1 or 0 end
if there > 5 then reply[5] = call('SRANDMEMBER', kin, KIN_ASKED) end
return reply

-- name: suspect
-- use: clock tools expiry suspects
-- Suspects the sessions of lost connections: shortens each to its grace period. It never lengthens a session, and never ends one.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: connections that are gone.
-- Returns the ms until the first of all suspected sessions ends (-1: none is suspected).

local OLD_GRACE_MS = 2000
local gone = {}
for i = 1, #ARGV do gone[ARGV[i]] = true end
local entries = call('HGETALL', key('presence'))
for i = 1, #entries, 2 do
  local id, presence = entries[i], entries[i + 1]
  if gone[presence] then
    local own = key('s:' .. id)
    local expires, grace = unpack(call('HMGET', own, 'expires', 'grace'))
    -- Store the former expiry and connection: an owner that has only lost its connection gets both back.
    call('HSET', own, 'suspected', expires, 'presence', presence)
    call('HDEL', key('presence'), id)
    call('SADD', key('suspects'), id)
    shorten(id, ceil(now + (grace or OLD_GRACE_MS)))
  end
end
return firstEnd()
