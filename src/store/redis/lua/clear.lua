-- use: clock queue jobs places choose
-- ARGV: state (w d c f), olderThanMs or '', limit, position to look from.
-- Answers the removed ids and the position to go on from (-1: end).
local latest = ARGV[2] == '' and math.huge or now - ARGV[2]
local jobs, nextPosition = choose(ARGV[1], latest, tonumber(ARGV[3]), tonumber(ARGV[4]))
local ids = {}
for i = 1, #jobs do
  take(jobs[i])
  ids[i] = jobs[i].id
end
erase(ids)
if #ids > 0 then tell(1, 'K', #ids) end
save()
return { ids, nextPosition }
