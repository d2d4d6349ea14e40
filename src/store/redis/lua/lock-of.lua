-- use: clock queue jobs
-- ARGV: job id. Answers session, fence, since, endsInMs, host, pid, name; nothing when the job is not active.
local job = find(ARGV[1])
if not job or job.state ~= 'a' then return false end
local host, pid, name, reapedAt = unpack(call('HMGET', key('s:' .. job.session), 'host', 'pid', 'name', 'expires'))
local expires = tonumber(call('ZSCORE', key('sessions'), job.session) or nil)
local ends = tonumber(job.ends)
-- A lock that was extended lives as long as its session, and at least until its own end.
local ending
if job.timed == '1' or not expires then ending = ends or tonumber(reapedAt) else ending = math.max(ends or 0, expires) end
return { job.session, job.fence, job.processed, floor(ending - now), host, pid, name }
