-- Changing, removing and cancelling jobs.

-- part: choose
-- Finds unlocked jobs of one list, the oldest first, for `clear` and `requeue`. One call reads at most AT_MOST jobs; a caller
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

-- name: cancel
-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks marking families entries schedules metrics locks leave retention failing notices choose active-locks
-- Cancels jobs that have not finished: by their ids, or those of one list, one batch per call. A job that is not active fails. An active
-- job is marked, and the next renewal notifies its session.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: reason; by (i ids, l list), then the job ids, or list (w p d k a), olderThanMs or '', limit, position.
-- Returns by ids: a letter for each job (d done, m missing, s finished), and the queues that got messages, each after NUL. By list: the ids
-- of the jobs, the position to continue from (-1: the list has ended), and the queues that got messages.

-- Finds active jobs that were not cancelled, the oldest first, as `choose` finds unlocked ones. One call reads at most AT_MOST jobs; the
-- position to continue from is the fence of the last one. More jobs than that are taken in the order of their fences.

-- Returns up to `limit` jobs that last started at or before `latest`, and the position to continue from (-1: the list has ended).
local function chooseActive(latest, limit, from)
  local locks, more = locksAfter(from > 0 and digits(from) or '', true)
  local ids, picked = {}, {}
  for i = 1, math.min(#locks, AT_MOST) do ids[i] = locks[i].id end
  more = more or #locks > AT_MOST
  local jobs, byAge = jobsOf(ids), from == 0 and not more
  for i = 1, #jobs do jobs[i].addedOn, jobs[i].fence = tonumber(jobs[i].added), tonumber(fenceOf(jobs[i].token)) end
  if byAge then
    table.sort(jobs, function(a, b) return a.addedOn < b.addedOn or (a.addedOn == b.addedOn and a.fence < b.fence) end)
  end
  for i = 1, #jobs do
    local job = jobs[i]
    -- Jobs that were sorted are all read again: this call cancels some of them, and the next one passes over these.
    if #picked == limit then return picked, byAge and 0 or jobs[i - 1].fence end
    local isOld = (tonumber(job.processed) or job.addedOn) <= latest
    if isOld and not (job.marked and openMarking().cancelled(job)) then picked[#picked + 1] = job end
  end
  return picked, more and locks[#ids].fence or -1
end

local reason, failed, noticed, seen = ARGV[1], {}, {}, {}

local function cancel(job)
  if job.state ~= 'a' then
    openFailing().cancel(job, reason)
    failed[#failed + 1] = job
  elseif not (job.marked and openMarking().cancelled(job)) then
    openMarking().cancel(job, reason)
    noticed[#noticed + 1] = job
  end
end

local function cancelById()
  local results, again = {}, {}
  for i = 3, #ARGV do
    local id, at = ARGV[i], i - 2
    local job = not seen[id] and find(id)
    if seen[id] then
      again[at] = id
    elseif not job then
      results[at] = 'm'
    elseif job.finished ~= '' then
      results[at] = 's'
    else
      seen[id], results[at] = true, 'd'
      cancel(job)
    end
  end
  if #failed > 0 then failing.store(failed) end
  -- A job that is named twice is found as the first cancel left it.
  for at, id in pairs(again) do
    local job = find(id)
    results[at] = not job and 'm' or job.finished ~= '' and 's' or 'd'
  end
  return concat(results)
end

local function cancelListed(list, olderThanMs, limit, from)
  local latest, ids = olderThanMs == '' and math.huge or now - olderThanMs, {}
  local jobs, nextPosition
  if list == 'a' then jobs, nextPosition = chooseActive(latest, limit, from) else jobs, nextPosition = choose(list, latest, limit, from) end
  for i = 1, #jobs do
    cancel(jobs[i])
    ids[i] = jobs[i].id
  end
  if #failed > 0 then failing.store(failed) end
  flushPlaces()
  -- If a cancelled job had the turn of its key, the next job of that key has moved into the positions already passed: start again there.
  if turned and nextPosition > from and list ~= 'a' then nextPosition = from end
  return ids, nextPosition
end

local results, ids, nextPosition
if ARGV[2] == 'i' then
  results = cancelById()
else
  ids, nextPosition = cancelListed(ARGV[3], ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]))
end
notify('cancelled', noticed, reason)
flushPlaces()
save()
if results then return results .. sentTo() end
return { ids, nextPosition, receivers() }

-- name: change
-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks marking families entries schedules locks leave reopen
-- Retries, promotes, delays or re-prioritises jobs.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: kind, a, b, then job ids.
--   rc, rf   retry a completed (rc) or failed (rf) job; a: 1 resets attempts made, b: 1 resets attempts started.
--            With = and a step behind b, the job loses this step and all later ones
--   p        promote a delayed job; a and b are empty
--   d        change the delay of a delayed job; a: ms
--   n        change the priority; a: priority, b: 1 for lifo
-- Returns a letter for each job: d done, m missing, s the job is not in a state that the change applies to, t it has no such step.

local kind, a, b = ARGV[1], ARGV[2], ARGV[3]
local fromStep, results = kind:sub(1, 1) == 'r' and match(b, '^%d=(.*)$'), {}
for i = 4, #ARGV do
  local job, result = find(ARGV[i]), 's'
  if not job then
    result = 'm'
  elseif kind == 'r' .. job.state and fromStep and not openMarking().dropFrom(job, fromStep) then
    result = 't'
  elseif kind == 'r' .. job.state then
    reopen({ job }, a, b:sub(1, 1))
    result = 'd'
  elseif kind == 'p' and job.state == 'd' then
    reopen({ job })
    result = 'd'
  elseif kind == 'd' and job.state == 'd' then
    leave(job)
    tell(1, 'Y', job.id, putDelayed(job, a))
    store({ job })
    result = 'd'
  elseif kind == 'n' then
    -- A job that is not waiting stores the priority; the priority counts when the job waits again.
    local waits = job.state == 'w'
    if waits then leave(job) end
    job.priority = a
    if waits then putWaiting(job, b == '1') end
    touch()
    store({ job })
    result = 'd'
  end
  results[#results + 1] = result
end
flushPlaces()
save()
return concat(results) .. sentTo()

-- name: clear
-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks marking families entries schedules locks leave choose
-- Removes the unlocked jobs of one list, except next jobs of schedules, one batch per call, and records them in one `cleaned` event. With
-- the limit 0 it only records the event, for a removal that found no job.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: list (w p d c f k), olderThanMs or '', limit, position to start from, then, only for families: the name of the queue, 1 or 0 to
-- remove
--   the children of the jobs too, 1 or 0 to remove parents of the same queue too when their last pending child is removed.
-- Returns the removed ids, the position to continue from (-1: the list has ended), and the queues that got messages.

-- Removes jobs by selection in a queue with families.

-- The pending children of a parent that this script has removed. Their links are deleted by messages, later.
local childrenGone, parentsGone = {}, {}

-- Removes the parents in the same queue that wait for this job alone.
local function removeParents(job, name)
  for _, parent in ipairs(family.parentsOf(family.read(job.id))) do
    if parent.queue == name then
      local id = parent.id
      local pending, link = unpack(call('HMGET', key('links:' .. id), '#p', name .. '\n' .. job.id))
      if link and link:sub(1, 1) == 'p' then childrenGone[id] = (childrenGone[id] or 0) + 1 end
      local one = tonumber(pending or 0) == childrenGone[id] and not parentsGone[id] and find(id)
      if one and one.state == 'p' then
        parentsGone[id] = true
        remove(one)
        erase({ id })
      end
    end
  end
end

-- children: removes the children too. parents: removes parents in the same queue with their last pending child.
local function removeOfFamily(job, name, children, parents)
  -- A parent may be selected beside its child, and is gone then.
  if parentsGone[job.id] then return end
  openFamily().name = name
  if parents then removeParents(job, name) end
  if children then family.partsChildren[job.id] = true end
  remove(job)
end

local latest = ARGV[2] == '' and math.huge or now - ARGV[2]
local from = tonumber(ARGV[4])
local jobs, nextPosition = choose(ARGV[1], latest, tonumber(ARGV[3]), from, queue.level > 2 and openSchedules().isNext)
local ids, name = {}, ARGV[5]
-- Remove the last job first: in the other order, each job with the same lock key would pass the turn to the next one.
for i = #jobs, 1, -1 do
  if name then removeOfFamily(jobs[i], name, ARGV[6] == '1', ARGV[7] == '1') else remove(jobs[i]) end
  ids[i] = jobs[i].id
end
erase(ids)
if #ids > 0 or ARGV[3] == '0' then tell(1, 'K', #ids) end
flushPlaces()
-- If a removed job had the turn of its key, the next job of that key has moved into the positions already passed: start again there.
if turned and nextPosition > from then nextPosition = from end
save()
return { ids, nextPosition, receivers() }

-- name: remove
-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks marking families entries schedules locks leave
-- Removes jobs that are not active.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: the name of the queue to remove the children of the jobs too ('' otherwise), then job ids.
-- Returns a letter for each job: d done, m missing, l locked, n next job of a schedule. The queues that got messages follow, each after
-- NUL.

local results, gone, name = {}, {}, ARGV[1]
for i = 2, #ARGV do
  local job = not gone[ARGV[i]] and find(ARGV[i])
  if not job then
    results[i - 1] = 'm'
  elseif job.state == 'a' then
    results[i - 1] = 'l'
  elseif queue.level > 2 and openSchedules().isNext(job) then
    results[i - 1] = 'n'
  else
    tell(1, 'V', job.id, STATES[job.state])
    if name ~= '' and job.marked then
      openFamily().name = name
      family.partsChildren[job.id] = true
    end
    remove(job)
    gone[job.id] = true
    results[i - 1] = 'd'
  end
end
local ids = {}
for id in pairs(gone) do ids[#ids + 1] = id end
erase(ids)
flushPlaces()
save()
return concat(results) .. sentTo()

-- name: requeue
-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks marking families entries schedules locks leave reopen choose
-- Makes delayed or finished jobs wait again, one batch per call.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: list (d c f), olderThanMs or '', limit, position to start from, 1 to reset attempts made, 1 to reset attempts started.
-- Returns the ids of the jobs that wait again, and the position to continue from (-1: the list has ended).

local latest = ARGV[2] == '' and math.huge or now - ARGV[2]
local jobs, nextPosition = choose(ARGV[1], latest, tonumber(ARGV[3]), tonumber(ARGV[4]))
local ids = {}
for i = 1, #jobs do ids[i] = jobs[i].id end
reopen(jobs, ARGV[5], ARGV[6])
flushPlaces()
save()
return { ids, nextPosition, receivers() }

-- name: revoke
-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks marking families entries schedules metrics locks leave retention failing hand-back notices
-- Revokes the locks of active jobs. The jobs wait again, or fail if they were cancelled. The next renewal reports the revocation to the
-- session.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: reason, then job ids.
-- Returns a letter for each job: d done, m missing, s the job is not active. The queues that got messages follow, each after NUL.

local ids = {}
for i = 2, #ARGV do ids[i - 1] = ARGV[i] end
local texts, replies, taken, seen = fetch(key('run'), ids), {}, {}, {}
for i = 1, #ids do
  local job = texts[i] and not seen[ids[i]] and decode(ids[i], texts[i])
  replies[i] = texts[i] and 's' or 'm'
  if job and job.state == 'a' then
    taken[#taken + 1] = job
    seen[job.id] = true
    replies[i] = 'd'
  end
end
notify('revoked', taken, ARGV[1])
giveBack(taken)
flushPlaces()
save()
return concat(replies) .. sentTo()

-- part: notices
-- Notices for the owners of locks. The next renewal of a session returns them. Each session numbers its notices upwards.
--   revoked:<session>     number NUL job id NUL fence NUL reason, by number
--   cancelled:<session>   the same for cancelled jobs
-- In s:<session>, `revoked` is the number of the last notice, and `acked` of the last one that the owner has processed.

-- kind: revoked or cancelled. The jobs are active.
local function notify(kind, jobs, reason)
  local bySession = {}
  for i = 1, #jobs do
    local session = sessionOf(jobs[i].token)
    bySession[session] = bySession[session] or {}
    table.insert(bySession[session], jobs[i])
  end
  for session, list in pairs(bySession) do
    local before, notices = call('HINCRBY', key('s:' .. session), 'revoked', #list) - #list, {}
    for i = 1, #list do
      local number = digits(before + i)
      notices[2 * i - 1], notices[2 * i] = number, concat({ number, list[i].id, fenceOf(list[i].token), reason }, '\0')
    end
    many('ZADD', key(kind .. ':' .. session), notices)
  end
end
