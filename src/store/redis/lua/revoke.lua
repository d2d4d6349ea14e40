-- use: clock queue jobs places locks retention hand-back
-- ARGV: reason, job ids. Takes the locks away and notes it for their sessions; answers 1 for each that was active.
local ids = {}
for i = 2, #ARGV do ids[i - 1] = ARGV[i] end
local texts, replies, taken, seen = fetch(key('run'), ids), {}, {}, {}
for i = 1, #ids do
  local job = texts[i] and not seen[ids[i]] and decode(ids[i], texts[i])
  replies[i] = 0
  if job and job.state == 'a' then
    local session = sessionOf(job.token)
    local number = call('HINCRBY', key('s:' .. session), 'revoked', 1)
    call('ZADD', key('revoked:' .. session), number, concat({ number, job.id, fenceOf(job.token), ARGV[1] }, '\0'))
    taken[#taken + 1] = job
    seen[job.id] = true
    replies[i] = 1
  end
end
giveBack(taken)
flushPlaces()
save()
return replies
