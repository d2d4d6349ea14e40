-- use: clock queue jobs places locks retention hand-back
-- ARGV: reason, job ids. Takes the locks away and notes it for their sessions; answers 1 for each that was active.
local replies = {}
for i = 2, #ARGV do
  local job = find(ARGV[i])
  if job and job.state == 'a' then
    local session = sessionOf(job.token)
    local number = call('HINCRBY', key('s:' .. session), 'revoked', 1)
    call('ZADD', key('revoked:' .. session), number, concat({ number, job.id, fenceOf(job.token), ARGV[1] }, '\0'))
    giveBack({ job })
    replies[i - 1] = 1
  else
    replies[i - 1] = 0
  end
end
save()
return replies
