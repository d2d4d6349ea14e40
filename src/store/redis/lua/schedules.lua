-- Schedules, and their next jobs.

-- part: schedules
-- Schedules, made on first use: see `lanes` in keys.lua.
local schedules
local function openSchedules()
  if schedules then return schedules end
  schedules = {}
  -- Schedules: their records, and how claims and ends of next jobs make them owing (the rule: see contract/scheduling.ts).
  --   schedules        by id: version,serial,state,at,count NUL id of the next job NUL spec
  --     serial         1 or 0
  --     state          r running, o owing, p paused, e ended
  --   scheduleSlots    the ids of all schedules by `at`
  --   owing            the ids of owing schedules, the oldest debt first
  --   scheduleChecks   the ids of running schedules by the time in ms at which a sweep looks at them next
  --   scheduleVersion  the highest version of deleted schedules, for as long as a late call may name it
  -- The bit `next` (IS_NEXT) is in the marks of the next job, and the id of the schedule in its extras (see `entries` in
  -- deduplication.lua).
  -- The first schedule of a queue raises its level to 3.
  local CHECKED_AFTER_MS = 60000

  function schedules.get(id)
    local text, one = call('HGET', key('schedules'), id), { id = id }
    if not text then return nil end
    one.version, one.serial, one.state, one.at, one.count, one.nextId, one.spec =
      match(text, '^(%d+),(%d),(%a),([^,]*),([^,]*)%z([^%z]*)%z(.*)$')
    return one
  end

  function schedules.text(one)
    return concat({ one.version, one.serial, one.state, one.at, one.count }, ',') .. '\0' .. one.nextId .. '\0' .. one.spec
  end

  function schedules.set(one, state)
    one.state = state
    call('HSET', key('schedules'), one.id, schedules.text(one))
    call('ZADD', key('scheduleSlots'), one.at, one.id)
    if state == 'o' then call('ZADD', key('owing'), digits(ticks(1)), one.id) else call('ZREM', key('owing'), one.id) end
    if state == 'r' then
      call('ZADD', key('scheduleChecks'), digits(one.at + CHECKED_AFTER_MS), one.id)
    else
      call('ZREM', key('scheduleChecks'), one.id)
    end
    if queue.level < 3 then set('level', 3) end
  end

  -- Returns the version of a new schedule: epoch ms, but above the versions of deleted schedules, also if the clock was set back.
  function schedules.firstVersion()
    return digits(math.max(floor(now), (call('GET', key('scheduleVersion')) or 0) + 1))
  end

  function schedules.delete(one)
    call('SET', key('scheduleVersion'), digits(math.max(one.version, schedules.firstVersion() - 1)), 'PX', ADD_REMEMBERED_MS)
    call('HDEL', key('schedules'), one.id)
    for _, place in ipairs({ 'scheduleSlots', 'owing', 'scheduleChecks' }) do call('ZREM', key(place), one.id) end
  end
  -- Schedules (see `schedules`): how claims and ends of next jobs make them owing.

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
  return schedules
end

-- name: schedule
-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks marking families entries schedules locks leave
-- Changes schedules, with their next jobs. Each change applies to one version, so a repeated call changes nothing.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: for each change: kind (u put, a advance, p pause, r remove), id, version, spec, serial (1 or 0), then the slot: at ('': no slot),
--   count, job id, flags, text, extra (see add.lua).
-- Returns a text for each change: a letter (d done, s stale, m missing, t taken), and the record (see `schedules`) if there is one.
-- The queues that the script has sent messages to follow.

local WIDTH = 11
openSchedules()

local function readChange(from)
  local change = {}
  change.kind, change.id, change.version, change.spec, change.serial, change.at, change.count, change.jobId, change.flags, change.text,
    change.extra = unpack(ARGV, from, from + WIDTH - 1)
  return change
end

local function done(one, state)
  schedules.set(one, state)
  return 'd' .. schedules.text(one)
end

-- The next job loses its place in the schedule. It is removed, or stays as an ordinary job.
local function dismiss(one, job, isRemoved)
  schedules.giveUp(one)
  if not isRemoved then return end
  tell(1, 'V', job.id, STATES[job.state])
  remove(job)
  flushPlaces()
  erase({ job.id })
end

local function make(one, change)
  if change.at == '' then return done(one, 'e') end
  one.at, one.count, one.nextId = change.at, change.count, change.jobId
  enterMarked(change.jobId, change.flags, change.text, change.extra)
  return done(one, 'r')
end

local function nextOf(one) return one.nextId ~= '' and find(one.nextId) end

-- Returns whether the job of a serial schedule has started and stays its next job.
local function keepsRun(one, change)
  if change.kind ~= 'u' or change.at == '' or change.serial == '0' or one.serial ~= '1' then return false end
  local job = nextOf(one)
  return job and schedules.isStarted(job)
end

-- Returns whether a job has the id of the slot, other than the next job that the slot replaces.
local function isTaken(one, change)
  local job = change.at ~= '' and find(change.jobId)
  if not job or (one and one.nextId == job.id and not schedules.isStarted(job)) then return false end
  tell(1, 'U', job.id)
  return true
end

local kinds = {}
kinds.a = make

function kinds.u(one, change)
  local stays, job = keepsRun(one, change), nextOf(one)
  one.spec, one.serial = change.spec, change.serial
  if stays then return done(one, 'r') end
  if job then dismiss(one, job, not schedules.isStarted(job)) else one.nextId = '' end
  return make(one, change)
end

function kinds.p(one)
  local job = nextOf(one)
  if job and not schedules.isStarted(job) then
    dismiss(one, job, true)
    one.count = digits(one.count - 1)
  end
  return done(one, 'p')
end

function kinds.r(one)
  local job = nextOf(one)
  if job then dismiss(one, job, job.state == 'd' and not schedules.isStarted(job)) end
  schedules.delete(one)
  return 'd'
end

local function carryOut(change)
  local one = schedules.get(change.id)
  if not one then
    if change.kind ~= 'u' or change.version ~= '0' then return 'm' end
    if isTaken(nil, change) then return 't' end
    return kinds.u({ id = change.id, version = schedules.firstVersion(), serial = '', at = '0', count = '0', nextId = '' }, change)
  end
  if one.version ~= change.version or (change.kind == 'a' and one.state ~= 'o') then return 's' .. schedules.text(one) end
  local hasSlot = change.kind == 'u' or change.kind == 'a'
  if hasSlot and not keepsRun(one, change) and isTaken(one, change) then return 't' .. schedules.text(one) end
  one.version = digits(one.version + 1)
  return kinds[change.kind](one, change)
end

local replies = {}
for from = 1, #ARGV, WIDTH do replies[#replies + 1] = carryOut(readChange(from)) end
flushPlaces()
save()
for _, name in ipairs(receivers() or {}) do replies[#replies + 1] = name end
return replies

-- name: schedules
-- use: clock tools
-- Reads schedules.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: by what, and its arguments: i, ids · o, the most owing schedules to return · p, first position, last position (-1: the last),
--   ascending (1 or 0).
-- Returns the number of all schedules, Redis' clock in ms, the ids, and their records (see `schedules`; nil if there is none).

local by, ids = ARGV[1], {}
if by == 'i' then
  for i = 2, #ARGV do ids[i - 1] = ARGV[i] end
elseif by == 'o' then
  ids = call('ZRANGEBYSCORE', key('owing'), '-inf', '+inf', 'LIMIT', 0, ARGV[2])
else
  local ascending = ARGV[4] == '1'
  ids = call(ascending and 'ZRANGE' or 'ZREVRANGE', key('scheduleSlots'), ARGV[2], ARGV[3])
end
return { call('ZCARD', key('scheduleSlots')), digits(floor(now)), ids, fetch(key('schedules'), ids) }
