-- Leaving a state, by whatever way.

-- part: leave
-- The one way out of a state. Every job that leaves a state goes through `leave`, except the plain jobs of the fast paths, and finished
-- jobs that retention trims. A job that ends goes through `ended` as well. A job that a caller removes goes through `remove`. Jobs that
-- leave the queue go through `erase` last.
-- The locks that a script releases are collected; `flushUnlocked` removes them from the sets together. Jobs of one claim mostly finish
-- together and in order. Then their fences are a range, which one command removes without a search for each job.
local freed, freedEnds, freedCount = {}, {}, 0
local function free(id, session, ends, fence)
  freedCount = freedCount + 1
  local lists = freed[session]
  if not lists then
    lists = { bound = {}, ending = {}, first = fence, next = fence }
    freed[session] = lists
  end
  if ends == '' then
    local bound = lists.bound
    bound[#bound + 1] = id
    lists.next = lists.next == fence and fence + 1
  else
    local ending = lists.ending
    ending[#ending + 1] = id
    freedEnds[#freedEnds + 1] = id
  end
end

local function flushUnlocked()
  if freedCount == 0 then return end
  set('active', queue.active - freedCount)
  vacated = queue.cap > 0
  many('ZREM', key('ends'), freedEnds)
  for session, lists in pairs(freed) do
    local bound = lists.bound
    if #bound > 1 and lists.next == lists.first + #bound then
      call('ZREMRANGEBYSCORE', key('bound:' .. session), digits(lists.first), digits(lists.next - 1))
    else
      many('ZREM', key('bound:' .. session), bound)
    end
    many('ZREM', key('ending:' .. session), lists.ending)
    tidy(session)
  end
  freed, freedEnds, freedCount = {}, {}, 0
end

-- Takes a job out of its state: an active job loses its lock and frees its lock key or its place in a group, any other job loses its
-- place. The caller gives the job its next state, or erases it.
local function leave(job)
  if job.state == 'a' then
    free(job.id, sessionOf(job.token), job.ends, tonumber(fenceOf(job.token)))
    if job.key then openLanes().freeKey(job.key) elseif job.group then openGroups().left(job.group) end
    job.seq, job.ends, job.timed, job.token = '', '', '0', ''
  elseif job.state ~= 'w' then
    pull(STATES[job.state], job.id)
  elseif job.key then
    flushPlaces()
    openLanes().leaveLine(job)
  elseif job.group then
    flushPlaces()
    openGroups().leaveLine(job)
  elseif job.priority == '0' then
    pull('wait', job.id)
  else
    pull('prio', job.ord .. job.id)
  end
  job.ord = ''
end

-- Takes a job that a caller removes out of its state, with the entry that it owns.
local function remove(job)
  leave(job)
  local entry = job.marked and openEntries().ownedBy(job)
  if entry then entries.delete({ entry.id }) end
end

-- Releases the entry of a marked job that has ended, and adds the draft. An entry with an end of its own stays.
local function release(job)
  local entry = openEntries().ownedBy(job)
  if not entry or entry.ends then return end
  entries.delete({ entry.id })
  if entry.draft == '' then return end
  local id, flags, extra, text = match(entry.draft, '^([^%z]*)%z([^%z]*)%z([^%z]*)%z(.*)$')
  if id == '' then
    repeat
      set('lastId', queue.lastId + 1)
      id = digits(queue.lastId)
    until call('HEXISTS', key('run'), id) == 0
  elseif call('HEXISTS', key('run'), id) == 1 then
    return tell(1, 'U', id)
  end
  enterMarked(id, flags, text, extra)
  entries.set(entry.id, id)
end

-- Does what the end of a job entails: its parents are told, its letter is sent, its entry is released, its draft added, its schedule owing.
-- Call it after the events of the end, and before the texts of the job are deleted. how: see `family.ended` in families.lua.
local function ended(job, how)
  if not job.marked then return end
  local extra = call('HGET', key('extra'), job.id)
  local marks = tonumber(match(extra or '', '^%d+')) or 0
  if marks % (2 * CANCELLED) >= CANCELLED then extra, how.isCancelled = openMarking().clearCancel(job.id, extra), true end
  if queue.level > 5 then openFamily().ended(job.id, extra, how) end
  if marks % (2 * UNIQUE) >= UNIQUE then release(job) end
  if marks % (2 * IS_NEXT) >= IS_NEXT then openSchedules().ended(job) end
end

local SIDES = { 'reason', 'stack', 'progress', 'lost' }

-- Deletes everything that belongs to jobs, and tells their families. The jobs have left their states before.
local function erase(ids)
  if #ids == 0 then return end
  local extras = queue.level > 1 and fetch(key('extra'), ids) or {}
  if queue.level > 5 then openFamily().erased(ids, extras) end
  many('HDEL', key('run'), ids)
  many('HDEL', key('job'), ids)
  many('HDEL', key('value'), ids)
  if queue.sides == 1 then
    for i = 1, #SIDES do many('HDEL', key(SIDES[i]), ids) end
  end
  local logs, marked = {}, {}
  for i = 1, #ids do
    logs[#logs + 1] = key('log:' .. ids[i])
    if extras[i] then
      marked[#marked + 1] = ids[i]
      if (match(extras[i], '^%d+') or 0) % (2 * STEPS) >= STEPS then logs[#logs + 1] = key('steps:' .. ids[i]) end
    end
  end
  many('HDEL', key('extra'), marked)
  for first = 1, #logs, AT_ONCE do call('UNLINK', unpack(logs, first, math.min(first + AT_ONCE - 1, #logs))) end
end

-- part: hand-back
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

-- LostBy of each stalled job, in the order of their events. It is the last record of the entry.
local losses = {}
local function tellLosses()
  if #losses > 0 then tell(0, 'I', '[' .. concat(losses, ',') .. ']') end
end

local function lossOf(owner, job)
  local found = owner.found or (job.timed == '1' and 'lock-expired') or (owner.suspected and 'process-gone') or 'session-expired'
  return owner.prefix and owner.prefix .. found .. '"}' or 'null'
end

-- Counts a stall for each job; the jobs wait again, or fail over the limit or if they were cancelled. `ownerOf` returns for a session how
-- often its jobs may stall (`stalls`), and the owner for LostBy. Returns the ids that wait, the ids that failed, and LostBy of both in this
-- order.
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

-- part: failing
-- Failures that are no outcome of a run, made on first use: see `lanes` in keys.lua.
local failing
local function openFailing()
  if failing then return failing end
  failing = {}
  -- Fails jobs for a reason that is not an outcome of their run: they stalled too often, or were cancelled.

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

  -- Lets a job that has left its place be a failed one. The caller records its events before. token: of its run, '' if it did not run.
  -- `failing.store` must follow.
  function failing.fail(job, reason, token, isCancelled)
    job.state, job.finished, job.reason = 'f', digits(floor(now)), reason
    ended(job, { state = 'f', text = reason, made = job.made, token = token, isCancelled = isCancelled })
  end

  -- Fails a cancelled job that would wait again, or one that is cancelled now. `flushUnlocked` and `failing.store` must follow.
  function failing.cancel(job, reason)
    local from, token = job.state, job.token
    leave(job)
    if from == 'd' then job.delay = '0' end
    -- An active job uses the record of a failed run. Without attempts, it stands for one event.
    if from == 'a' then tell(2, 'F', job.id, reason, '') else tell(1, 'A', job.id, reason, STATES[from]) end
    failing.fail(job, reason, token, true)
  end

  -- Stores failed jobs. It trims the list of failed jobs once for all of them: trimming for each job could work off a long list within one
  -- script.
  function failing.store(jobs)
    if settings and #jobs > 0 then openMetrics().count('failed', #jobs) end
    local kept, ids, gone, reasons, most, age = {}, {}, {}, {}, nil, nil
    for i = 1, #jobs do
      local job = jobs[i]
      local count, ageMs = keepOnFail(job.id)
      if count == 0 then
        gone[#gone + 1] = job.id
      else
        kept[#kept + 1], ids[#ids + 1] = job, job.id
        reasons[#reasons + 1], reasons[#reasons + 2] = job.id, job.reason
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
  return failing
end

-- part: reopen
-- Makes finished or delayed jobs wait again. A finished job becomes one that has not run, but keeps its
-- stack trace and logs, and its attempts unless they are reset: `resetMade` and `resetStarted` are '1' for that.
local function reopen(jobs, resetMade, resetStarted)
  local finished = {}
  for i = 1, #jobs do leave(jobs[i]) end
  for i = 1, #jobs do
    local job = jobs[i]
    local from = STATES[job.state]
    if resetMade == '1' then job.made = '0' end
    if resetStarted == '1' then job.started = '0' end
    if job.finished ~= '' then
      job.finished, job.processed, job.token = '', '', ''
      finished[#finished + 1], finished[job.id] = job.id, true
      noteSize(call('HSTRLEN', key('job'), job.id))
      if queue.sides == 1 then
        noteSize(call('HSTRLEN', key('stack'), job.id))
        noteSize(call('HSTRLEN', key('progress'), job.id))
      end
    end
    putWaiting(job, false)
    if from == 'delayed' then tell(1, 'P', job.id) else tell(1, 'W', job.id, from) end
  end
  store(jobs)
  for i = 1, #jobs do
    -- A finished job owns its entry again, unless an entry counts.
    local id = jobs[i].marked and finished[jobs[i].id] and openEntries().idOf(jobs[i])
    if id and not entries.counting(id) then entries.set(id, jobs[i].id) end
    if queue.level > 5 and jobs[i].marked and finished[jobs[i].id] then openFamily().reopened(jobs[i].id) end
  end
  many('HDEL', key('value'), finished)
  many('HDEL', key('reason'), finished)
end
