-- The steps of jobs (see contract/steps.ts).
--   steps:<job>   a hash, only of a job with the bit `steps`
--     =<name>     number NUL value. The numbers grow in the order in which the steps were recorded
--     #           the last number, the number of steps, and the bytes of their names and values, with commas between
-- A process of an older version, which does not know steps, leaves the hash of a job behind that it removes. So the hash counts only if the
-- job has the bit, and the first step of a job deletes what it finds.
local MAX_STEPS, MAX_STEP_BYTES = 1000, 1048576

-- The counts of steps by job, as this script knows them.
local counted = {}
local function countsOf(job)
  local counts = counted[job.id]
  if counts then return counts end
  counts = { hash = key('steps:' .. job.id), last = 0, size = 0, bytes = 0 }
  counts.any = job.marked and marking.has((marking.read(job.id)), STEPS)
  local last, size, bytes = match(counts.any and call('HGET', counts.hash, '#') or '', '^(%d+),(%d+),(%d+)$')
  if last then counts.last, counts.size, counts.bytes = tonumber(last), tonumber(size), tonumber(bytes) end
  counted[job.id] = counts
  return counts
end

local function countsText(counts) return counts.last .. ',' .. counts.size .. ',' .. counts.bytes end

-- Records a step unless the name is recorded. Returns the recorded value; nil if there is no room. The caller stores the job.
function marking.record(job, name, value)
  local counts, field = countsOf(job), '=' .. name
  local recorded = counts.any and call('HGET', counts.hash, field)
  if recorded then return recorded:sub(recorded:find('\0', 1, true) + 1) end
  local bytes = counts.bytes + #name + #value
  if counts.size >= MAX_STEPS or bytes > MAX_STEP_BYTES then return nil end
  if not counts.any then
    local marks, fields = marking.read(job.id)
    fields.t = true
    marking.write(job.id, marks + STEPS, fields)
    raiseForMarks(digits(STEPS))
    call('UNLINK', counts.hash)
    counts.any, job.marked = true, true
  end
  counts.last, counts.size, counts.bytes = counts.last + 1, counts.size + 1, bytes
  call('HSET', counts.hash, field, counts.last .. '\0' .. value, '#', countsText(counts))
  return value
end

-- Records the step of an owner that delays the job. Returns why the delay is refused: r the signal that it awaits has come, f there is no room.
function marking.recordDelay(job, name, value, awaits)
  local counts = countsOf(job)
  if awaits and counts.any and call('HEXISTS', counts.hash, '=' .. awaits) == 1 then return 'r' end
  if not marking.record(job, name, value) then return 'f' end
  job.stalls = '0'
end

-- Deletes a step and all later ones. Returns false if there is no such step.
function marking.dropFrom(job, name)
  local counts = countsOf(job)
  local first = tonumber(counts.any and match(call('HGET', counts.hash, '=' .. name) or '', '^%d+') or nil)
  if not first then return false end
  local all, gone = call('HGETALL', counts.hash), {}
  for i = 1, #all, 2 do
    -- The field # has no NUL.
    local number = match(all[i + 1], '^(%d+)%z')
    if number and tonumber(number) >= first then
      gone[#gone + 1] = all[i]
      counts.size, counts.bytes = counts.size - 1, counts.bytes - (#all[i] - 1) - (#all[i + 1] - #number - 1)
    end
  end
  many('HDEL', counts.hash, gone)
  call('HSET', counts.hash, '#', countsText(counts))
  return true
end

-- Sets the signal that a job with steps waits for while it is delayed; nil: none.
function marking.await(job, name)
  local marks, fields = marking.read(job.id)
  if not marking.has(marks, STEPS) or fields.w == name then return end
  fields.w = name
  marking.write(job.id, marks, fields)
end

-- Returns the signal that a job waits for while it is delayed.
function marking.awaited(job)
  if not job.marked then return nil end
  local _, fields = marking.read(job.id)
  return fields.w
end
