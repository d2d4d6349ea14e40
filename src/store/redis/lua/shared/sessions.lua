-- Handing back what ended sessions hold.
local owners = {}
local function ownerOf(session)
  local owner = owners[session]
  if not owner then
    local limit, ended, host, pid, name, suspected =
      unpack(call('HMGET', key('s:' .. session), 'maxStalls', 'ended', 'host', 'pid', 'name', 'suspected'))
    owner = { stalls = tonumber(limit) or 0, charged = ended ~= '0', suspected = suspected, found = ended == EXITED and 'exit' }
    if host then
      owner.prefix = '{"host":' .. cjson.encode(host) .. ',"pid":' .. pid .. ',"worker":' .. cjson.encode(name) .. ',"found":"'
    end
    owners[session] = owner
  end
  return owner
end

-- The jobs whose locks lie in a set. An entry without a job (keys deleted by hand, or evicted) would be found again for ever.
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

-- Locks of a closed session go back at their owner's word, those of a dead one are stalls.
local function handBack(jobs)
  local charged, uncharged = {}, {}
  table.sort(jobs, byFence)
  for i = 1, #jobs do
    local list = ownerOf(sessionOf(jobs[i].token)).charged and charged or uncharged
    list[#list + 1] = jobs[i]
  end
  giveBack(uncharged)
  return stall(charged, ownerOf)
end
