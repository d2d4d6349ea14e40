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
