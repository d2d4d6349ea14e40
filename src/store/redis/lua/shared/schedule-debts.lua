-- Schedules (see schedule-records.lua): how claims and ends of next jobs make them owing.

-- Returns the schedule whose next job this is; nil if it is no next job. extra: the marks and extras of the job.
function schedules.of(jobId, extra)
  local id = extraOf(extra, IS_NEXT, 's')
  local one = id and schedules.get(id)
  return one and one.nextId == jobId and one or nil
end

-- Lets the next job be an ordinary job.
function schedules.giveUp(one)
  local marks, extras = match(call('HGET', key('extra'), one.nextId) or '', '^(%d+)(,.*)$')
  if marks and marks % (2 * IS_NEXT) >= IS_NEXT then
    call('HSET', key('extra'), one.nextId, digits(marks - IS_NEXT) .. extras)
  end
  one.nextId = ''
end

-- A paused schedule had left its job to run, and stays paused.
local function owe(one)
  schedules.giveUp(one)
  one.version = digits(one.version + 1)
  schedules.set(one, one.state == 'r' and 'o' or one.state)
end

-- Makes the schedules of claimed jobs owing, unless they are serial. Returns for each job now,record or false, and how many records.
function schedules.started(ids, extras)
  local debts, count = {}, 0
  for i = 1, #ids do
    local one = schedules.of(ids[i], extras[i])
    debts[i] = false
    if one and one.serial == '0' then
      owe(one)
      debts[i], count = digits(floor(now)) .. ',' .. schedules.text(one), count + 1
    end
  end
  return debts, count
end

-- Makes the schedule of a marked job that has ended owing. Workers are woken, because the call may carry no claim that learns of it.
function schedules.ended(job)
  local one = schedules.of(job.id, call('HGET', key('extra'), job.id))
  if not one then return end
  owe(one)
  offer()
end

-- The second net. Looks at running schedules whose slot passed more than a minute ago, each once a minute, and makes those owing whose
-- next job is gone, finished or, unless serial, active.
function schedules.check(limit)
  for _, id in ipairs(call('ZRANGEBYSCORE', key('scheduleChecks'), '-inf', now, 'LIMIT', 0, limit)) do
    local one = schedules.get(id)
    local job = one and find(one.nextId)
    if not one then
      call('ZREM', key('scheduleChecks'), id)
    elseif job and job.finished == '' and (job.state ~= 'a' or one.serial == '1') then
      call('ZADD', key('scheduleChecks'), digits(ceil(now + CHECKED_AFTER_MS)), id)
    else
      owe(one)
      offer()
    end
  end
end

-- Returns whether a job is the next job of its schedule.
function schedules.isNext(job) return job.marked and schedules.of(job.id, call('HGET', key('extra'), job.id)) ~= nil end

function schedules.isStarted(job) return job.state == 'a' or tonumber(job.started) > 0 end
