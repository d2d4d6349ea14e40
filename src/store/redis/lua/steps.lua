-- use: clock tools marks
-- Reads the steps of a job.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: job id.
-- Returns the fields and values of the hash that job-steps.lua describes; nothing if the job has no steps.
local marks = match(call('HGET', key('extra'), ARGV[1]) or '', '^%d+') or 0
if marks % (2 * STEPS) < STEPS then return {} end
return call('HGETALL', key('steps:' .. ARGV[1]))
