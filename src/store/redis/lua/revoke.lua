-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks marking families entries schedules metrics locks leave retention failing hand-back notices
-- Revokes the locks of active jobs. The jobs wait again, or fail if they were cancelled. The next renewal reports the revocation to the session.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: reason, then job ids.
-- Returns a letter for each job: d done, m missing, s the job is not active. The queues that got messages follow, each after NUL.
local ids = {}
for i = 2, #ARGV do ids[i - 1] = ARGV[i] end
local texts, replies, taken, seen = fetch(key('run'), ids), {}, {}, {}
for i = 1, #ids do
  local job = texts[i] and not seen[ids[i]] and decode(ids[i], texts[i])
  replies[i] = texts[i] and 's' or 'm'
  if job and job.state == 'a' then
    taken[#taken + 1] = job
    seen[job.id] = true
    replies[i] = 'd'
  end
end
notify('revoked', taken, ARGV[1])
giveBack(taken)
flushPlaces()
save()
return concat(replies) .. sentTo()
