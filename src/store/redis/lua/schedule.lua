-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks marking families entries schedules locks leave
-- Changes schedules, with their next jobs. Each change applies to one version, so a repeated call changes nothing.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: for each change: kind (u put, a advance, p pause, r remove), id, version, spec, serial (1 or 0), then the slot: at ('': no slot),
--   count, job id, flags, text, extra (see add.lua).
-- Returns a text for each change: a letter (d done, s stale, m missing, t taken), and the record (see schedule-records.lua) if there is one.
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
