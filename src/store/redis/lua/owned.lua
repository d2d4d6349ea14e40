-- use: clock queue jobs
-- ARGV: session. Answers of each lock that it holds: job id, fence, seq of the claim.
local replies = {}
for _, kind in ipairs({ 'bound:', 'ending:' }) do
  local held = call('ZRANGE', key(kind .. ARGV[1]), 0, -1)
  local texts = fetch(key('run'), held)
  for i = 1, #held do
    local job = decode(held[i], texts[i])
    replies[#replies + 1] = { job.id, fenceOf(job.token), job.seq }
  end
end
return replies
