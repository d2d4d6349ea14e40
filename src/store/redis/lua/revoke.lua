-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks marking families entries schedules metrics locks leave retention hand-back
-- Revokes the locks of active jobs. The jobs wait again, and the next renewal reports the revocation to the session.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: reason, then job ids.
-- Returns a letter for each job: d done, m missing, s the job is not active.
local ids = {}
for i = 2, #ARGV do ids[i - 1] = ARGV[i] end
local texts, replies, taken, seen, notes = fetch(key('run'), ids), {}, {}, {}, {}

-- Records a revocation for the session of the job. Each session numbers its revocations upwards.
local function note(job)
  local session = sessionOf(job.token)
  local list = notes[session]
  if not list then
    list = { first = tonumber(call('HGET', key('s:' .. session), 'revoked') or 0) }
    notes[session] = list
  end
  local number = digits(list.first + #list / 2 + 1)
  list[#list + 1] = number
  list[#list + 1] = concat({ number, job.id, fenceOf(job.token), ARGV[1] }, '\0')
end

for i = 1, #ids do
  local job = texts[i] and not seen[ids[i]] and decode(ids[i], texts[i])
  replies[i] = texts[i] and 's' or 'm'
  if job and job.state == 'a' then
    note(job)
    taken[#taken + 1] = job
    seen[job.id] = true
    replies[i] = 'd'
  end
end
for session, list in pairs(notes) do
  call('HINCRBY', key('s:' .. session), 'revoked', #list / 2)
  many('ZADD', key('revoked:' .. session), list)
end
giveBack(taken)
flushPlaces()
save()
return concat(replies)
