-- use: clock counters queue jobs lanes places choose
-- Removes the unlocked jobs of one state, one batch per call, and reports them in one `cleaned` event.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: state (w d c f), olderThanMs or '', limit, position to start from, removed.
--   removed   only with limit 0: the script removes nothing and reports this number of jobs, which other calls removed
-- Returns the removed ids and the position to continue from (-1: the list has ended).
local latest = ARGV[2] == '' and math.huge or now - ARGV[2]
local from = tonumber(ARGV[4])
local jobs, nextPosition = choose(ARGV[1], latest, tonumber(ARGV[3]), from)
local ids = {}
-- Remove the last job first: in the other order, each job with the same lock key would pass the turn to the next one.
for i = #jobs, 1, -1 do
  take(jobs[i])
  ids[i] = jobs[i].id
end
erase(ids)
if #ids > 0 then tell(1, 'K', #ids) elseif ARGV[3] == '0' then tell(1, 'K', ARGV[5]) end
flushPlaces()
-- If a removed job had the turn of its key, the next job of that key has moved into the positions already passed: start again there.
if turned and nextPosition > from then nextPosition = from end
save()
return { ids, nextPosition }
