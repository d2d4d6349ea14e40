-- Dead letters.

-- name: send
-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks marking families entries schedules locks leave choose
-- Sends dead letters back: by their ids, or those of one list, one batch per call.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: to, the queue that gets the jobs; by (i ids, l list), then the job ids, or list (w p d c f k), olderThanMs or '', limit, position.
-- Returns by ids: a letter for each job (d done, m missing, l locked, s no letter), and the queues that got messages, each after NUL. By
-- list: the ids of the letters, the position to continue from (-1: the list has ended), and the queues that got messages.

local to, ids, gone = ARGV[1], {}, {}
openFamily()

local function send(job)
  if not family.sendBack(job, to) then return false end
  tell(1, 'V', job.id, STATES[job.state])
  remove(job)
  ids[#ids + 1], gone[job.id] = job.id, true
  return true
end

local function sendById()
  local results = {}
  for i = 3, #ARGV do
    local job = not gone[ARGV[i]] and find(ARGV[i])
    results[#results + 1] = not job and 'm' or job.state == 'a' and 'l' or send(job) and 'd' or 's'
  end
  return concat(results)
end

local function isNoLetter(job)
  local _, fields = family.read(job.id)
  return not job.marked or fields.o == nil
end

local results, nextPosition
if ARGV[2] == 'i' then
  results = sendById()
else
  local latest = ARGV[4] == '' and math.huge or now - ARGV[4]
  local jobs
  jobs, nextPosition = choose(ARGV[3], latest, tonumber(ARGV[5]), tonumber(ARGV[6]), isNoLetter)
  for i = 1, #jobs do send(jobs[i]) end
end
erase(ids)
flushPlaces()
save()
if results then return results .. sentTo() end
return { ids, nextPosition, receivers() }
