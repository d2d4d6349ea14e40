-- Moves active jobs that have no outcome of their owner: `giveBack` for jobs that were handed back or revoked (no stall), `stall` for
-- jobs whose owner is dead (counts as a stall).
local STALLED_REASON = 'job stalled more than allowable limit'

-- Reads removeOnFail from the job's options, for a failure that no worker reports. Returns count and age in ms, each nil if it does not
-- limit.
local function keepOnFail(id)
  local text = call('HGET', key('job'), id)
  local opts = text and match(text, '^[^%z]*%z[^%z]*%z([^%z]*)%z')
  local ok, options = pcall(cjson.decode, opts or '{}')
  local rule = ok and type(options) == 'table' and options.removeOnFail
  if rule == true then return 0 end
  if type(rule) == 'number' then return rule end
  if type(rule) ~= 'table' then return end
  return type(rule.count) == 'number' and rule.count or nil, type(rule.age) == 'number' and rule.age * 1000 or nil
end

-- Makes jobs wait again in front of all others. `jobs` is in claim order, and the jobs wait in this order.
local function toFront(jobs)
  for i = #jobs, 1, -1 do putWaiting(jobs[i], true) end
  store(jobs)
end

local function giveBack(jobs)
  for i = 1, #jobs do
    leave(jobs[i])
    tell(1, 'B', jobs[i].id)
  end
  flushUnlocked()
  toFront(jobs)
end

-- Fails jobs over their stall limit. It trims the list of failed jobs once for all of them: trimming for each job could work off a long
-- list within one script.
local function failStalled(jobs)
  if settings and #jobs > 0 then openMetrics().count('failed', #jobs) end
  local kept, ids, gone, reasons, most, age = {}, {}, {}, {}, nil, nil
  for i = 1, #jobs do
    local job = jobs[i]
    local count, ageMs = keepOnFail(job.id)
    if count == 0 then
      gone[#gone + 1] = job.id
    else
      job.state, job.finished = 'f', digits(floor(now))
      kept[#kept + 1], ids[#ids + 1] = job, job.id
      reasons[#reasons + 1], reasons[#reasons + 2] = job.id, STALLED_REASON
      most, age = least(most, count), least(age, ageMs)
    end
  end
  erase(gone)
  if #kept == 0 then return end
  many('HSET', key('reason'), reasons)
  set('sides', 1)
  store(kept)
  putFinished('failed', ids, most, age)
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

-- Counts a stall for each job; the jobs wait again, or fail over the limit. `ownerOf` returns for a session how often its jobs may stall
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
    if job.stalls <= owner.stalls then
      tell(2, 'S', job.id)
      stalled[#stalled + 1] = job
    else
      tell(2, 'Z', job.id, STALLED_REASON)
      ended(job, { state = 'f', text = STALLED_REASON, made = job.made, token = token })
      over[#over + 1] = job
    end
  end
  flushUnlocked()
  if #lost > 0 then
    -- Write LostBy before `failStalled` erases the jobs that are not kept, so that it is erased with them.
    many('HSET', key('lost'), lost)
    set('sides', 1)
  end
  failStalled(over)
  toFront(stalled)
  local ids, lostBy = {}, {}
  for i = 1, #stalled do ids[i], lostBy[i] = stalled[i].id, stalled[i].loss end
  for i = 1, #over do failed[i], lostBy[#ids + i] = over[i].id, over[i].loss end
  return ids, failed, lostBy
end
