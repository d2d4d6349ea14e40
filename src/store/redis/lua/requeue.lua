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
