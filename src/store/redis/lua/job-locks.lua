-- use: clock tools counters queue jobs
-- Reads the locks of jobs and their owners.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: job ids.
-- Returns for each job: session, fence, since, endsInMs, and host, pid, name, instance of the owner; 0 if the job is not active.
local replies = {}
for i = 1, #ARGV do
  local job = find(ARGV[i])
  replies[i] = 0
  if job and job.state == 'a' then
    local session = sessionOf(job.token)
    local host, pid, name, instance, expires, ended =
      unpack(call('HMGET', key('s:' .. session), 'host', 'pid', 'name', 'instance', 'expires', 'ended'))
    local ends = tonumber(job.ends)
    -- A lock that was extended (timed 0) lives as long as its session, and at least until its own end.
    local ending
    if job.timed == '1' or ended then ending = ends or tonumber(expires) else ending = math.max(ends or 0, tonumber(expires)) end
    replies[i] = { session, fenceOf(job.token), job.processed, floor(ending - now), host, pid, name, instance }
  end
end
return replies
