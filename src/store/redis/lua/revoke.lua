-- use: clock queue jobs places locks retention hand-back
-- ARGV: reason, job ids. Takes the locks away and notes it for their sessions; answers 1 for each that was active.
local replies = {}
for i = 2, #ARGV do
  local job = find(ARGV[i])
  if job and job.state == 'a' then
    local own = key('s:' .. job.session)
    local number = call('HINCRBY', own, 'revoked', 1)
    local revocation = concat({ number, job.id, job.fence, ARGV[1] }, '\0')
    call('ZADD', key('revoked:' .. job.session), number, revocation)
    giveBack({ job })
    replies[i - 1] = 1
  else
    replies[i - 1] = 0
  end
end
save()
return replies
