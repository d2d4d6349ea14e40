-- Ending sessions. An ended session neither renews nor claims; what it holds is handed back in bites, here or by any sweep, and
-- `reaped` lists those that still have locks to hand back.
local CALL_REMEMBERED_MS = 15 * 60 * 1000

-- `charged` 0: what it holds goes back without counting a stall, whoever hands it back.
local function endSession(id, charged)
  local expires = call('ZSCORE', key('sessions'), id)
  if not expires then return end
  call('ZREM', key('sessions'), id)
  call('HDEL', key('presence'), id)
  call('SREM', key('suspects'), id)
  call('PEXPIRE', key('call:' .. id), CALL_REMEMBERED_MS)
  call('HSET', key('s:' .. id), 'expires', expires, 'charged', charged)
  call('ZADD', key('reaped'), expires, id)
end

local limits = {}
local function maxStalls(session)
  local most = limits[session]
  if not most then
    local limit, charged = unpack(call('HMGET', key('s:' .. session), 'maxStalls', 'charged'))
    most = { stalls = tonumber(limit) or 0, charged = charged ~= '0' }
    limits[session] = most
  end
  return most
end

local function byFence(a, b) return tonumber(a.fence) < tonumber(b.fence) end

local function jobsOf(ids)
  local texts, jobs = fetch(key('run'), ids), {}
  for i = 1, #ids do jobs[i] = decode(ids[i], texts[i]) end
  return jobs
end

-- Hands back what the ended sessions bound, at most `limit` locks: the newest first, so that when the rest follows in later
-- bites, the oldest will be in front. Locks of a closed session go back at their owner's word, those of a dead one are stalls.
local function handBack(jobs)
  local charged, free = {}, {}
  table.sort(jobs, byFence)
  for i = 1, #jobs do
    local list = maxStalls(jobs[i].session).charged and charged or free
    list[#list + 1] = jobs[i]
  end
  giveBack(free)
  return stall(charged, function(session) return maxStalls(session).stalls end)
end
