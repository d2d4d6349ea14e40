-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks marking families entries schedules locks leave choose family-clear
-- Removes the unlocked jobs of one list, except next jobs of schedules, one batch per call, and records them in one `cleaned` event. With
-- the limit 0 it only records the event, for a removal that found no job.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: list (w p d c f k), olderThanMs or '', limit, position to start from, then, only for families: the name of the queue, 1 or 0 to remove
--   the children of the jobs too, 1 or 0 to remove parents of the same queue too when their last pending child is removed.
-- Returns the removed ids, the position to continue from (-1: the list has ended), and the queues that got messages.
local latest = ARGV[2] == '' and math.huge or now - ARGV[2]
local from = tonumber(ARGV[4])
local jobs, nextPosition = choose(ARGV[1], latest, tonumber(ARGV[3]), from, queue.layout > 2 and openSchedules().isNext)
local ids, name = {}, ARGV[5]
-- Remove the last job first: in the other order, each job with the same lock key would pass the turn to the next one.
for i = #jobs, 1, -1 do
  if name then removeOfFamily(jobs[i], name, ARGV[6] == '1', ARGV[7] == '1') else remove(jobs[i]) end
  ids[i] = jobs[i].id
end
erase(ids)
if #ids > 0 or ARGV[3] == '0' then tell(1, 'K', #ids) end
flushPlaces()
-- If a removed job had the turn of its key, the next job of that key has moved into the positions already passed: start again there.
if turned and nextPosition > from then nextPosition = from end
save()
return { ids, nextPosition, receivers() }
