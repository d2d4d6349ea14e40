-- Steps of jobs.

-- name: steps
-- use: clock tools marks
-- Reads the steps of a job.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: job id.
-- Returns the fields and values of the hash that `marking` in jobs.lua describes; nothing if the job has no steps.

local marks = match(call('HGET', key('extra'), ARGV[1]) or '', '^%d+') or 0
if marks % (2 * STEPS) < STEPS then return {} end
return call('HGETALL', key('steps:' .. ARGV[1]))

-- name: write-steps
-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks marking families entries schedules locks leave reopen writes
-- Carries out writes of which some record steps of jobs (see contract/steps.ts). Other writes do not pay for these parts.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: for each write: kind (s step, and those of write.lua), job id, `=` and the token ('': a signal), value, name of the step.
-- Returns for each write a letter (d done, l lost, m missing, f full, e ended), and the recorded value of a step that is done, else as
-- write.lua.

local function writeStep(job, isOwner, name, value)
  if not isOwner and job.finished ~= '' then return 'e', -1 end
  local wasMarked, recorded = job.marked, openMarking().record(job, name, value)
  if not recorded then return 'f', -1 end
  if not isOwner and job.state == 'd' and marking.awaited(job) == name then
    reopen({ job })
  elseif not wasMarked or isOwner and job.stalls ~= '0' then
    if isOwner then job.stalls = '0' end
    store({ job })
  end
  return 'd', recorded
end

local replies = writeAll(writeStep)
flushPlaces()
save()
return replies
