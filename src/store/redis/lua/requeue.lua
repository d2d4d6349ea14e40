-- use: clock counters queue jobs lanes places reopen choose
-- ARGV: state (d c f), olderThanMs or '', limit, position to look from.
-- Answers how many wait again and the position to go on from (-1: end).
local latest = ARGV[2] == '' and math.huge or now - ARGV[2]
local jobs, nextPosition = choose(ARGV[1], latest, tonumber(ARGV[3]), tonumber(ARGV[4]))
local ids = {}
for i = 1, #jobs do ids[i] = jobs[i].id end
many('ZREM', key(STATES[ARGV[1]]), ids)
reopen(jobs)
store(jobs)
flushPlaces()
save()
return { #jobs, nextPosition }
