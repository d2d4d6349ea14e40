-- Finds unlocked jobs of one list, the oldest first, for clear.lua and requeue.lua. One call reads at most AT_MOST jobs; a caller
-- that wants more calls again with the position that this call returned.
-- Lists: w waiting without a priority, p waiting with one, d delayed, c completed, f failed, k waiting for
-- children.
-- Waiting and delayed jobs are stored in the order in which they will run. Fewer than AT_MOST of them are sorted by age. More are
-- taken in stored order: otherwise, emptying a queue of a million jobs in batches would sort a million jobs for each batch.
local AT_MOST = 400

local function places(list)
  if list == 'w' then return { 'wait', 'behind:wait' } end
  if list == 'p' then return { 'prio', 'behind:prio' } end
  if list == 'k' then return { 'waiting-children' } end
  return { STATES[list] }
end

-- Returns up to `count` ids of a list, from position `from` on.
local function slice(list, from, count)
  local ids, skip = {}, from
  for _, place in ipairs(places(list)) do
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

-- Returns up to `limit` jobs that finished, last started or were added (the first that is known) at or before `latest`, and the position
-- to continue from (-1: the list has ended). Jobs for which `isKept` returns true are passed over; false: none is.
local function choose(list, latest, limit, from, isKept)
  local ids = slice(list, from, AT_MOST)
  local looked = #ids
  local byAge = from == 0 and looked < AT_MOST and (list == 'w' or list == 'p' or list == 'd' or list == 'k')
  -- If age neither sorts nor selects the jobs, the first `limit` jobs are enough.
  if not byAge and latest == math.huge and not isKept then
    for i = looked, limit + 1, -1 do ids[i] = nil end
  end
  local jobs = jobsOf(ids)
  for i = 1, #jobs do
    jobs[i].position, jobs[i].addedOn = i, tonumber(jobs[i].added)
  end
  if byAge then
    if list == 'w' or list == 'p' then setPlaces(jobs, ids) end
    table.sort(jobs, function(a, b) return a.addedOn < b.addedOn or (a.addedOn == b.addedOn and a.position < b.position) end)
  end
  local picked, passed = {}, 0
  for i = 1, #jobs do
    if #picked == limit then break end
    local job = jobs[i]
    local since = tonumber(job.finished) or tonumber(job.processed) or job.addedOn
    if since <= latest and not (isKept and isKept(job)) then picked[#picked + 1] = job else passed = passed + 1 end
  end
  if looked < AT_MOST and #picked < limit then return picked, -1 end
  -- Jobs that were sorted are all read again: their positions say nothing about their age.
  return picked, byAge and from or from + passed
end
