-- Moves active jobs that have no outcome of their owner: `giveBack` for jobs that were handed back or revoked (no stall), `stall` for
-- jobs whose owner is dead (counts as a stall). Cancelled jobs fail instead.
local STALLED_REASON = 'job stalled more than allowable limit'

-- Makes jobs wait again in front of all others. `jobs` is in claim order, and the jobs wait in this order.
local function toFront(jobs)
  for i = #jobs, 1, -1 do putWaiting(jobs[i], true) end
  store(jobs)
end

-- Returns why a job was cancelled; nil or false if it was not.
local function cancelled(job) return job.marked and openMarking().cancelled(job) end

local function giveBack(jobs)
  local back, failed = {}, {}
  for i = 1, #jobs do
    local job = jobs[i]
    local reason = cancelled(job)
    if reason then
      openFailing().cancel(job, reason)
      failed[#failed + 1] = job
    else
      leave(job)
      tell(1, 'B', job.id)
      back[#back + 1] = job
    end
  end
  flushUnlocked()
  if #failed > 0 then failing.store(failed) end
  toFront(back)
end

-- LostBy of each stalled job, in the order of their events. It is the last record of the entry: readers of older versions, which do not
-- know this record, stop there and have read all events.
local losses = {}
local function tellLosses()
  if #losses > 0 then tell(0, 'I', '[' .. concat(losses, ',') .. ']') end
end

local function lossOf(owner, job)
  local found = owner.found or (job.timed == '1' and 'lock-expired') or (owner.suspected and 'process-gone') or 'session-expired'
  return owner.prefix and owner.prefix .. found .. '"}' or 'null'
end

-- Counts a stall for each job; the jobs wait again, or fail over the limit or if they were cancelled. `ownerOf` returns for a session how often its jobs may stall
-- (`stalls`), and the owner for LostBy. Returns the ids that wait, the ids that failed, and LostBy of both in this order.
local function stall(jobs, ownerOf)
  local stalled, failed, over, lost = {}, {}, {}, {}
  for i = 1, #jobs do
    local job = jobs[i]
    local owner = ownerOf(sessionOf(job.token))
    job.loss = lossOf(owner, job)
    losses[#losses + 1] = job.loss
    if owner.prefix then
      lost[#lost + 1], lost[#lost + 2] = job.id, job.loss
    else
      call('HDEL', key('lost'), job.id)
    end
    job.stalls = job.stalls + 1
    local token = job.token
    leave(job)
    local reason = cancelled(job) or job.stalls > owner.stalls and STALLED_REASON
    if not reason then
      tell(2, 'S', job.id)
      stalled[#stalled + 1] = job
    else
      tell(2, 'Z', job.id, reason)
      openFailing().fail(job, reason, token)
      over[#over + 1] = job
    end
  end
  flushUnlocked()
  if #lost > 0 then
    -- Write LostBy before `failing.store` erases the jobs that are not kept, so that it is erased with them.
    many('HSET', key('lost'), lost)
    set('sides', 1)
  end
  if #over > 0 then failing.store(over) end
  toFront(stalled)
  local ids, lostBy = {}, {}
  for i = 1, #stalled do ids[i], lostBy[i] = stalled[i].id, stalled[i].loss end
  for i = 1, #over do failed[i], lostBy[#ids + i] = over[i].id, over[i].loss end
  return ids, failed, lostBy
end
