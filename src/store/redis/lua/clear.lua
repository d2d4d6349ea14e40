-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks entries schedules locks leave choose
-- Removes the unlocked jobs of one list, except next jobs of schedules, one batch per call, and records them in one `cleaned` event. With
-- the limit 0 it only records the event, for a removal that found no job.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: list (w p d c f), olderThanMs or '', limit, position to start from.
-- Returns the removed ids and the position to continue from (-1: the list has ended).
local latest = ARGV[2] == '' and math.huge or now - ARGV[2]
local from = tonumber(ARGV[4])
local jobs, nextPosition = choose(ARGV[1], latest, tonumber(ARGV[3]), from, queue.layout > 2 and openSchedules().isNext)
local ids = {}
-- Remove the last job first: in the other order, each job with the same lock key would pass the turn to the next one.
for i = #jobs, 1, -1 do
  remove(jobs[i])
  ids[i] = jobs[i].id
end
erase(ids)
if #ids > 0 or ARGV[3] == '0' then tell(1, 'K', #ids) end
flushPlaces()
-- If a removed job had the turn of its key, the next job of that key has moved into the positions already passed: start again there.
if turned and nextPosition > from then nextPosition = from end
save()
return { ids, nextPosition }
