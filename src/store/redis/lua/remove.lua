-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks entries schedules locks leave
-- Removes jobs that are not active.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: job ids.
-- Returns a letter for each job: d done, m missing, l locked, n next job of a schedule.
local results, gone = {}, {}
for i = 1, #ARGV do
  local job = not gone[ARGV[i]] and find(ARGV[i])
  if not job then
    results[i] = 'm'
  elseif job.state == 'a' then
    results[i] = 'l'
  elseif queue.layout > 2 and openSchedules().isNext(job) then
    results[i] = 'n'
  else
    tell(1, 'V', job.id, STATES[job.state])
    remove(job)
    gone[job.id] = true
    results[i] = 'd'
  end
end
local ids = {}
for id in pairs(gone) do ids[#ids + 1] = id end
erase(ids)
flushPlaces()
save()
return concat(results)
