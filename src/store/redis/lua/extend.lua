-- use: clock queue jobs locks
-- ARGV: of each lock: job id, token, durationMs. Answers a letter for each: d done, l lost, m missing, f finished by this token.
local results = {}
for at = 1, #ARGV, 3 do
  local job = find(ARGV[at])
  if not job then
    results[#results + 1] = 'm'
  elseif job.token ~= ARGV[at + 1] then
    results[#results + 1] = 'l'
  elseif job.state ~= 'a' then
    results[#results + 1] = 'f'
  else
    if job.ends == '' then
      local session = sessionOf(job.token)
      call('ZREM', key('bound:' .. session), job.id)
      call('ZADD', key('ending:' .. session), fenceOf(job.token), job.id)
    end
    job.ends = digits(ceil(now + ARGV[at + 2]))
    call('ZADD', key('ends'), job.ends, job.id)
    store({ job })
    results[#results + 1] = 'd'
  end
end
return concat(results)
