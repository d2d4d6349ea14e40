-- use: clock counters queue
-- Pauses or resumes a queue. A call that changes nothing emits no event.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: paused (1 pauses, 0 resumes).
-- Returns 1 if the state has changed, else 0.
local paused = tonumber(ARGV[1])
if queue.paused == paused then return 0 end
set('paused', paused)
tell(1, paused == 1 and 'O' or 'Q')
if paused == 0 then offer() end
save()
return 1
