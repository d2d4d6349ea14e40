-- use: clock counters queue jobs lanes places choose
-- ARGV: state (w d c f), olderThanMs or '', limit, position to look from, and with the limit 0 how many others have gone.
-- Answers the removed ids and the position to go on from (-1: end).
local latest = ARGV[2] == '' and math.huge or now - ARGV[2]
local from = tonumber(ARGV[4])
local jobs, nextPosition = choose(ARGV[1], latest, tonumber(ARGV[3]), from)
local ids = {}
-- The last one first: of jobs with one lock key, the turn would go from each to the next.
for i = #jobs, 1, -1 do
  take(jobs[i])
  ids[i] = jobs[i].id
end
erase(ids)
if #ids > 0 then tell(1, 'K', #ids) elseif ARGV[3] == '0' then tell(1, 'K', ARGV[5]) end
flushPlaces()
-- Jobs that had stood behind a removed one now stand among those that were passed over.
if turned and nextPosition > from then nextPosition = from end
save()
return { ids, nextPosition }
