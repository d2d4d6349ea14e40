-- use: clock counters queue
-- Changes settings of a queue: its pause, its block, its cap. An empty argument leaves a setting as it is.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: paused (1 pauses, 0 resumes; only a change emits an event); blockedMs (0 ends the block, and the current window of the rate
-- limit); maxActive, the most jobs that may be active at once (-1 removes the cap).
-- Workers are woken, because jobs may be claimable now.
local paused, blockedMs, maxActive = tonumber(ARGV[1]), ARGV[2], ARGV[3]
if paused and queue.paused ~= paused then
  set('paused', paused)
  tell(1, paused == 1 and 'O' or 'Q')
  if paused == 0 then offer() end
end
if blockedMs ~= '' then
  set('limitedUntil', blockedMs == '0' and 0 or ceil(now + blockedMs))
  if blockedMs == '0' then set('windowEnds', 0) end
  offer()
end
if maxActive ~= '' then
  set('cap', maxActive + 1)
  offer()
end
save()
return 1
