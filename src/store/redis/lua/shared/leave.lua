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
-- Call it after the events of the end, and before the texts of the job are deleted. how: see `family.ended` in family-ends.lua.
local function ended(job, how)
  if not job.marked then return end
  local extra = call('HGET', key('extra'), job.id)
  local marks = tonumber(match(extra or '', '^%d+')) or 0
  if marks % (2 * CANCELLED) >= CANCELLED then extra, how.isCancelled = openMarking().clearCancel(job.id, extra), true end
  if queue.layout > 5 then openFamily().ended(job.id, extra, how) end
  if marks % (2 * UNIQUE) >= UNIQUE then release(job) end
  if marks % (2 * IS_NEXT) >= IS_NEXT then openSchedules().ended(job) end
end

local SIDES = { 'reason', 'stack', 'progress', 'lost' }

-- Deletes everything that belongs to jobs, and tells their families. The jobs have left their states before.
local function erase(ids)
  if #ids == 0 then return end
  local extras = queue.layout > 1 and fetch(key('extra'), ids) or {}
  if queue.layout > 5 then openFamily().erased(ids, extras) end
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
