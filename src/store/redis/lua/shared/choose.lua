-- Finds unlocked jobs of one state, the oldest first, for clear.lua and requeue.lua. One call reads at most AT_MOST jobs; a caller
-- that wants more calls again with the position that this call returned.
-- Waiting and delayed jobs are stored in the order in which they will run. Fewer than AT_MOST of them are sorted by age. More are
-- taken in stored order: otherwise, emptying a queue of a million jobs in batches would sort a million jobs for each batch.
local AT_MOST = 400

local function places(state)
  if state == 'w' then return { 'wait', 'prio', 'behind:wait', 'behind:prio' } end
  return { STATES[state] }
end

-- Returns up to `count` ids of a state, from position `from` on.
local function slice(state, from, count)
  local ids, skip = {}, from
  for _, place in ipairs(places(state)) do
    local size = call('ZCARD', key(place))
    if skip < size and #ids < count then
      local part = call('ZRANGE', key(place), skip, skip + count - #ids - 1)
      local named = match(place, 'prio$') and 17 or 1
      for i = 1, #part do ids[#ids + 1] = part[i]:sub(named) end
    end
    skip = math.max(0, skip - size)
  end
  return ids
end

-- Sets `position` of waiting jobs to their place, so that jobs added in the same ms are sorted by place.
local function setPlaces(jobs, ids)
  if #ids == 0 then return end
  local places = {}
  for i, score in ipairs(call('ZMSCORE', key('wait'), unpack(ids))) do places[ids[i]] = tonumber(score) end
  for i = 1, #jobs do jobs[i].position = places[jobs[i].id] or tonumber(jobs[i].ord) - ORD_BIAS end
end

-- Returns up to `limit` jobs that were added (finished jobs: finished) at or before `latest`, and the position to continue from
-- (-1: the list has ended).
local function choose(state, latest, limit, from)
  local ids = slice(state, from, AT_MOST)
  local looked = #ids
  local byAge = from == 0 and looked < AT_MOST and (state == 'w' or state == 'd')
  -- If age neither sorts nor selects the jobs, the first `limit` jobs are enough.
  if not byAge and latest == math.huge then
    for i = looked, limit + 1, -1 do ids[i] = nil end
  end
  local jobs = jobsOf(ids)
  for i = 1, #jobs do
    local job = jobs[i]
    job.since, job.position = tonumber(job.finished) or tonumber(job.added), i
  end
  if byAge then
    if state == 'w' then setPlaces(jobs, ids) end
    table.sort(jobs, function(a, b) return a.since < b.since or (a.since == b.since and a.position < b.position) end)
  end
  local picked, passed = {}, 0
  for i = 1, #jobs do
    if #picked == limit then break end
    if jobs[i].since <= latest then picked[#picked + 1] = jobs[i] else passed = passed + 1 end
  end
  return picked, looked < AT_MOST and #picked < limit and -1 or from + passed
end
