-- Hands back the locks of ended sessions, for sweep.lua and close-session.lua.
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
