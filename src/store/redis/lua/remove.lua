-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks marking families entries schedules locks leave
-- Removes jobs that are not active.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: the name of the queue to remove the children of the jobs too ('' otherwise), then job ids.
-- Returns a letter for each job: d done, m missing, l locked, n next job of a schedule. The queues that got messages follow, each after NUL.
local results, gone, name = {}, {}, ARGV[1]
for i = 2, #ARGV do
  local job = not gone[ARGV[i]] and find(ARGV[i])
  if not job then
    results[i - 1] = 'm'
  elseif job.state == 'a' then
    results[i - 1] = 'l'
  elseif queue.layout > 2 and openSchedules().isNext(job) then
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
