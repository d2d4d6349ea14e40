-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks marking families entries schedules metrics locks leave retention failing notices choose active-locks choose-active
-- Cancels jobs that have not finished: by their ids, or those of one list, one batch per call. A job that is not active fails. An active job
-- is marked, and the next renewal notifies its session.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: reason; by (i ids, l list), then the job ids, or list (w p d k a), olderThanMs or '', limit, position.
-- Returns by ids: a letter for each job (d done, m missing, s finished), and the queues that got messages, each after NUL. By list: the ids
-- of the jobs, the position to continue from (-1: the list has ended), and the queues that got messages.
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
