-- use: clock counters queue jobs
-- Reads the lock of a job and its owner.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: job id.
-- Returns session, fence, since, endsInMs, host, pid, name, instance; nil if the job is not active.
local job = find(ARGV[1])
if not job or job.state ~= 'a' then return false end
local session = sessionOf(job.token)
local host, pid, name, instance, expires, ended =
  unpack(call('HMGET', key('s:' .. session), 'host', 'pid', 'name', 'instance', 'expires', 'ended'))
local ends = tonumber(job.ends)
-- A lock that was extended (timed 0) lives as long as its session, and at least until its own end.
local ending
if job.timed == '1' or ended then ending = ends or tonumber(expires) else ending = math.max(ends or 0, tonumber(expires)) end
return { session, fenceOf(job.token), job.processed, floor(ending - now), host, pid, name, instance }
