-- Finds unlocked jobs of one state, the oldest first, looking at no more than AT_MOST of them: a caller that wants more asks again
-- from the position where this ended. Waiting and delayed jobs lie in the order in which they will run; few of them are sorted by
-- age, many are taken as they lie, or emptying a queue of a million in bites would sort a million for each.
local AT_MOST = 400

local function places(state)
  if state == 'w' then return { 'wait', 'prio', 'behind:wait', 'behind:prio' } end
  return { STATES[state] }
end

-- Jobs at `from` and the following positions of a state.
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

-- Of those that came in one moment, the one before is the one whose place is.
local function setPlaces(jobs, ids)
  if #ids == 0 then return end
  local places = {}
  for i, score in ipairs(call('ZMSCORE', key('wait'), unpack(ids))) do places[ids[i]] = tonumber(score) end
  for i = 1, #jobs do jobs[i].position = places[jobs[i].id] or tonumber(jobs[i].ord) - ORD_BIAS end
end

-- Up to `limit` jobs that came (finished ones: finished) at or before `latest`, and the position to go on from, -1 at the end.
local function choose(state, latest, limit, from)
  local ids = slice(state, from, AT_MOST)
  local looked = #ids
  local byAge = from == 0 and looked < AT_MOST and (state == 'w' or state == 'd')
  -- Neither sorted by age nor judged by it, the first ones will do.
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
