-- Finds active jobs that were not cancelled, the oldest first, as choose.lua finds unlocked ones. One call reads at most AT_MOST jobs; the
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
