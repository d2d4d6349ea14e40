-- use: clock counters queue
-- ARGV: 1 to pause, 0 to resume.
local paused = tonumber(ARGV[1])
if queue.paused == paused then return 0 end
set('paused', paused)
tell(1, paused == 1 and 'O' or 'Q')
if paused == 0 then offer() end
save()
return 1
