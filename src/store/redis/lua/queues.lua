-- Queues: the beginning of every script, the counters and settings of a queue, and reading and changing them.

-- part: clock
-- The first part of every script: the keys of one queue, Redis' clock, and limits that parts share. It makes no function, because Redis
-- makes a script's functions anew in every run, and most runs take a fast path that needs none of those in `tools`.
-- KEYS[1] is the queue's hash tag. Every other key is the tag and a suffix, so that all keys of a queue lie in one slot.
local base = KEYS[1]
-- A local variable is found faster than a global one.
local ARGV, unpack, tonumber = ARGV, unpack, tonumber
local call, format, match, concat, ceil, floor = redis.call, string.format, string.match, table.concat, math.ceil, math.floor

local clock = call('TIME')
local micros = clock[1] * 1000000 + clock[2]
-- Now in ms, with a fraction. Scripts round expiries up, so that nothing ends early.
local now = micros / 1000

-- The format of numbers as digits. Lua's own conversion keeps 14 digits, but ticks have 16. %d is faster than %.0f and needs a 64-bit long.
local DIGITS = format('%d', 2 ^ 40) == '1099511627776' and '%d' or '%.0f'

-- Limits that several parts share: the events that a queue keeps; the length in bytes up to which the texts of claimed jobs are joined;
-- how long the last add of a caller is remembered; and how many old finished jobs one script removes at most (see retention.lua).
local EVENTS_KEPT, SHORT, ADD_REMEMBERED_MS, TRIMMED_AT_ONCE = 10000, 65536, 15 * 60 * 1000, 100
-- The length in bytes from which the extras of a job are not read as a whole to tell its parents: see families.lua.
local LONG_EXTRA = 8192
-- Limits in bytes (see budget.ts): a reply, a value that is copied into an event, and half of the event log.
local REPLY_BYTES, EVENT_VALUE_BYTES, EVENTS_SEGMENT = 4194304, 4096, 4194304
-- Replaces a value in an event if the value is too large. It cannot be confused with a value, because no JSON text of Holdfast ends in
-- a space.
local LARGE_VALUE = 'null '

-- part: tools
-- Functions that all parts share, except the fast paths.
local function key(suffix) return base .. ':' .. suffix end

local function digits(number) return format(DIGITS, number) end

-- Runs a command with a list of arguments. Lua's stack holds about 8000 values, so long lists are split into several commands.
local AT_ONCE = 4000
local function many(command, target, list)
  local size = #list
  if size == 0 then return end
  if size <= AT_ONCE then return call(command, target, unpack(list)) end
  for first = 1, size, AT_ONCE do call(command, target, unpack(list, first, math.min(first + AT_ONCE - 1, size))) end
end

-- Returns the values of `fields` of a hash, false for fields that do not exist.
local function fetch(target, fields)
  local size = #fields
  if size == 0 then return {} end
  if size <= AT_ONCE then return call('HMGET', target, unpack(fields)) end
  local values = {}
  for first = 1, size, AT_ONCE do
    local part = call('HMGET', target, unpack(fields, first, math.min(first + AT_ONCE - 1, size)))
    for i = 1, #part do values[first + i - 1] = part[i] end
  end
  return values
end

-- Returns the error for a call that arrives after a later call of the same caller.
local function straggler(caller, seq, last)
  return { err = 'HOLDFAST Call ' .. seq .. ' of ' .. caller .. ' came after its call ' .. last .. ': number calls upwards.' }
end

-- part: counters
-- Reads the counters and settings of the queue. `save` in `queue` writes them.
--   tick     the last number given out for fences and places: at least the clock in µs, so it grows across a failover too
--   front    the last place given out ahead of all waiting jobs; below zero
--   active   the number of job locks
--   sides    1 when some job has or had a reason or progress, or was lost by its owner
--   delays   1 when there may be delayed jobs
--   event, firstEvent, version, armed, jobsVersion, jobsArmed, locksVersion, locksArmed   see `save`
--   keys     1 when some job has or had a lock key
--   cap      one more than the jobs that may be active; 0 without a cap
--   largest  upper bound in bytes for the text, stack trace and progress of each unfinished job. Claims measure jobs only if that many
--            jobs of this size would exceed a reply
--   eventBytes, eventMark, eventMarkBefore   see `save`
--   level    what the queue has had, so that scripts need not look for what it never had: 2 a marked job (see `entries` in
--            deduplication.lua), 3 a schedule (see schedules.lua), 4 a rate or metrics, 5 a group (see groups.lua), 6 a family or a dead
--            letter (see families.lua). A script that knows only lower levels returns an error and changes nothing: a later release that
--            stores something else raises it.
-- The second list follows the counters in queues of level 4 and higher. Other queues do not pay for it.
--   rateMax, rateMs   one more than `max` of the rate, 0 without a rate; its duration in ms
--   points            one more than the whole minutes that are kept for metrics; 0 if the queue does not count
--   completedCount, completedMinute, completedCurrent, completedFirst, and the same for failed jobs: see `minutes` in metrics.lua
--   turns, plainTurn, groupActive, groupMax, groupMs, recheck   see groups.lua
-- The counters are packed numbers in one text. As fields of a hash, each would become a string, and making strings is most of the cost
-- of short scripts.
local PACKED, SETTINGS, HIGHEST = '<$packing{counters}', '<$packing{settings}', 6
local packed = call('GET', base .. ':meta') or ''
local size = 8 * (#PACKED - 1)
if packed == '' then packed = ('\0'):rep(size) end
local $each{counters #} = struct.unpack(PACKED, packed)
if level > HIGHEST then
  return { err = 'HOLDFAST NEWER The keys of the queue have level ' .. level .. ', and this Holdfast knows levels up to ' .. HIGHEST .. '.' }
end
if level == 0 then level = 1 end
local $each{settings #}
if level > 3 then
  local short = size + 8 * (#SETTINGS - 1) - #packed
  if short > 0 then packed = packed .. ('\0'):rep(short) end
  $each{settings #} = struct.unpack(SETTINGS, packed, size + 1)
end

-- part: queue
-- The counters of the queue and the events of the script. `set` changes a counter, `tell` records an event, and one `save` at the end of
-- the script writes both and wakes watchers.
-- dirty: a counter has changed. touched: watchers of events are woken. offered: watchers of jobs are woken.
local dirty, touched, offered = false, false, false
-- vacated: jobs have left active under a cap; other sessions may use the free slots unless this script claims again itself.
-- turned: ids of jobs that became claimable because their lock key is free. A worker that frees a key mostly claims its next job in the
-- same script; then no other worker needs to be woken for that job.
-- namesFreed: a named lock may be free.
local vacated, turned, namesFreed = false, nil, false
-- The table is made with all fields at once: a table that grows field by field is reallocated several times.
local queue = {
  $each{counters # = #},
}
-- The second list of `counters`; nil if the queue has none of them.
local settings = level > 3 and { $each{settings # = #} } or nil

local function set(name, value)
  queue[name] = value
  dirty = true
end

-- Reserves `count` ticks for this caller alone. Returns the first of them.
local function ticks(count)
  local first = queue.tick + 1
  if first < micros then first = micros end
  set('tick', first + count - 1)
  return first
end

-- Records events as a letter and its texts. events.ts lists how many texts follow a letter, and the events that it stands for; `count`
-- is the number of these events.
local told, toldSize, toldEvents = {}, 0, 0
local function tell(count, letter, a, b, c)
  toldEvents = toldEvents + count
  told[toldSize + 1] = letter
  toldSize = toldSize + 1
  if a then toldSize = toldSize + 1 told[toldSize] = a end
  if b then toldSize = toldSize + 1 told[toldSize] = b end
  if c then toldSize = toldSize + 1 told[toldSize] = c end
end

-- Records the size of a text of an unfinished job: see `largest` in `counters`.
local function noteSize(bytes)
  if bytes > queue.largest then set('largest', bytes) end
end

-- Records a change that emits no event, so that watchers of events are woken.
local function touch() touched = true end

-- Returns the value of a result or a progress for an event.
local function eventValue(text) return #text > EVENT_VALUE_BYTES and LARGE_VALUE or text end

-- Returns the same for the result of a job that is removed when it finishes. A large result is stored beside the log, so that the log
-- can drop the result and keep the event.
local valuesBeside = nil
local function lastValue(id, text)
  if #text <= EVENT_VALUE_BYTES then return text end
  valuesBeside = valuesBeside or {}
  valuesBeside[#valuesBeside + 1] = { id, text }
  return LARGE_VALUE
end

-- Stores large results, one stream entry per value. The first part of the entry's id is the number of the last event of the script.
-- The stream is bounded by bytes: `bytes` were written since the event `mark`, and one segment before that, since the event `before`.
-- Older entries are dropped.
local function saveValues(last)
  local bytes, mark, before = match(call('GET', key('event-value-marks')) or '0 0 0', '^(%d+) (%S+) (%S+)$')
  -- All values of one script belong to the same segment, so they are dropped together: a reader rarely finds only a part of them.
  if tonumber(bytes) >= EVENTS_SEGMENT then bytes, mark, before = 0, digits(last), mark end
  for i = 1, #valuesBeside do
    local job, text = valuesBeside[i][1], valuesBeside[i][2]
    call('XADD', key('event-values'), 'MINID', before, digits(last) .. '-' .. i, job, text)
    bytes = bytes + #text
  end
  call('SET', key('event-value-marks'), digits(bytes) .. ' ' .. mark .. ' ' .. before)
end

-- Records that a job may be claimable, now or at a time that workers do not know yet.
local function offer() touched, offered = true, true end

-- Counts a change and publishes it if the queue is armed. Watchers arm the queue (`watch`); only the first change after that is
-- published, until watchers arm the queue again. So a busy queue does not flood idle watchers.
local function wake(channel, version, armed)
  set(version, queue[version] + 1)
  -- pcall: if the user lacks the right to publish, watchers still find changes by polling.
  if queue[armed] == 1 then
    redis.pcall('PUBLISH', key(channel), queue[version])
    set(armed, 0)
  end
end

-- Writes the events and the counters, and wakes watchers. One entry of the stream holds all events of a script. The entry's id is the
-- number of its last event and the number of its events, so a range query finds the entry of any event.
-- The log is bounded by count and by bytes: `eventBytes` were written since the event `eventMark`, and one segment before that, since
-- `eventMarkBefore`. Older events are dropped. Watchers of jobs, of named locks and of events are woken separately.
-- atEnd: writes what a part has put off until the end of the script.
local arming, atEnd = false, nil
local function save()
  if atEnd then atEnd() end
  if toldEvents > 0 then
    local last, body = queue.event + toldEvents, concat(told, '\0')
    local oldest = math.max(queue.eventMarkBefore, last - EVENTS_KEPT + 1)
    local id = digits(last) .. '-' .. toldEvents
    call('XADD', key('events'), 'MINID', '~', digits(oldest), id, 'e', body)
    if valuesBeside then saveValues(last) end
    set('event', last)
    set('eventBytes', queue.eventBytes + #body)
    if queue.eventBytes >= EVENTS_SEGMENT then
      set('eventMarkBefore', queue.eventMark)
      set('eventMark', last + 1)
      set('eventBytes', 0)
    end
    touched = true
  end
  if (turned and next(turned)) or (vacated and queue.active < queue.cap - 1) then offer() end
  if touched or namesFreed then wake('events-wake', 'version', 'armed') end
  if offered then wake('jobs-wake', 'jobsVersion', 'jobsArmed') end
  if namesFreed then wake('locks-wake', 'locksVersion', 'locksArmed') end
  if arming and queue.jobsArmed == 0 then set('jobsArmed', 1) end
  if dirty then
    local counts = struct.pack(PACKED, $each{counters queue.#})
    if settings then counts = counts .. struct.pack(SETTINGS, $each{settings settings.#}) end
    call('SET', key('meta'), counts)
  end
end

-- name: configure
-- use: clock tools counters queue groups metrics
-- Changes settings of a queue: its pause, block, cap, rate, metrics and groups. An empty argument leaves a setting as it is.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: paused (1 pauses, 0 resumes; only a change emits an event); blockedMs (0 ends the block, and the current window of the rate
--   limit); maxActive, the most jobs that may be active at once (-1 removes the cap); rateMax and rateMs, the rate (-1 removes it);
--   points, the whole minutes that are kept for metrics (-1 stops counting and forgets the counts); then the limits of all groups:
--   7 `=` if they change, 8 maxActive, 9 and 10 the rate ('' for none); then the settings of one group: 11 `=` and its key, 12 paused
--   (1 or 0), 13 maxActive, 14 and 15 the rate (-1 removes the limit), 16 blockedMs (0 ends its block and its window).
-- Workers are woken, because jobs may be claimable now.

local paused, blockedMs, maxActive, rateMax, rateMs, points = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

-- Changes fields of the second list (see `counters`). Processes of versions that do not know this list must not touch the queue then.
local function change(fields)
  settings = settings or { $each{settings # = 0} }
  for name, value in pairs(fields) do settings[name] = value end
  set('level', math.max(queue.level, 4))
end

if paused and queue.paused ~= paused then
  set('paused', paused)
  tell(1, paused == 1 and 'O' or 'Q')
  if paused == 0 then offer() end
end
if blockedMs ~= '' then
  set('limitedUntil', blockedMs == '0' and 0 or ceil(now + blockedMs))
  if blockedMs == '0' then set('windowEnds', 0) end
  offer()
end
if maxActive ~= '' then
  set('cap', maxActive + 1)
  offer()
end
if rateMax == '-1' then
  if settings then change({ rateMax = 0, rateMs = 0 }) end
  offer()
elseif rateMax ~= '' then
  change({ rateMax = rateMax + 1, rateMs = tonumber(rateMs) })
  offer()
end
if points == '-1' and settings then
  local off = { points = 0 }
  for _, state in ipairs({ 'completed', 'failed' }) do
    for _, field in ipairs({ 'Count', 'Minute', 'Current', 'First' }) do off[state .. field] = 0 end
    call('UNLINK', key('minutes:' .. state))
  end
  change(off)
elseif points ~= '' and points ~= '-1' then
  change({ points = points + 1 })
  openMetrics().trim('completed')
  metrics.trim('failed')
end

local function setGroup(one)
  if ARGV[12] ~= '' then one.paused = ARGV[12] end
  if ARGV[13] ~= '' then one.maxActive = ARGV[13] == '-1' and '' or ARGV[13] end
  if ARGV[14] ~= '' then one.rateMax, one.rateMs = ARGV[14] == '-1' and '' or ARGV[14], ARGV[15] end
  if ARGV[16] ~= '' then one.blockedUntil = ceil(now + ARGV[16]) end
  if ARGV[16] == '0' then one.blockedUntil, one.windowEnds = 0, 0 end
  groups.touch(one)
end

if ARGV[7] == '=' then
  local max = tonumber(ARGV[9])
  openGroups()
  change({ groupActive = (tonumber(ARGV[8]) or -1) + 1, groupMax = max and max + 1 or 0, groupMs = max and tonumber(ARGV[10]) or 0 })
  groups.recheck()
  offer()
end
if ARGV[11] ~= '' then
  setGroup(openGroups().get(ARGV[11]:sub(2)))
  offer()
end
save()
return 1

-- name: forget
-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks marking families entries schedules locks leave
-- Forgets events of a queue, or an emptied queue with its events.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: keep, the number of newest events to keep; all (1: also reset the settings and the id counter of the queue).
-- Returns how many events it removed; -1 if there are more schedules than a call deletes (call again).
-- A stream entry holds many events. If some of them are kept, the entry stays, and `firstEvent` hides the removed ones.
-- Deletes schedules with the next jobs that have not started, at most BITE. Returns whether there are more.

local BITE = 100
local function forgetSchedules()
  local ids = call('ZRANGE', key('scheduleSlots'), 0, BITE)
  for i = 1, math.min(#ids, BITE) do
    local one = openSchedules().get(ids[i]) or { id = ids[i], version = 0, nextId = '' }
    local job = find(one.nextId)
    if job and schedules.isStarted(job) then
      schedules.giveUp(one)
    elseif job then
      remove(job)
      erase({ job.id })
    end
    schedules.delete(one)
  end
  flushPlaces()
  return #ids > BITE
end

if ARGV[2] == '1' and queue.level > 2 and forgetSchedules() then
  save()
  return -1
end
local oldest = call('XRANGE', key('events'), '-', '+', 'COUNT', 1)[1]
local first = queue.event + 1
if oldest then
  local last, count = match(oldest[1], '^(%d+)-(%d+)$')
  first = math.max(queue.firstEvent, last - count + 1)
end
local wanted = queue.event - tonumber(ARGV[1]) + 1
local went = math.max(0, math.min(wanted, queue.event + 1) - first)
if went > 0 then
  set('firstEvent', first + went)
  call('XTRIM', key('events'), 'MINID', digits(first + went))
  call('XTRIM', key('event-values'), 'MINID', digits(first + went))
end
if ARGV[1] == '0' then call('UNLINK', key('event-values'), key('event-value-marks')) end
if ARGV[2] == '1' then
  for _, name in ipairs({ 'paused', 'limitedUntil', 'windowEnds', 'lastId', 'cap' }) do set(name, 0) end
  call('UNLINK', key('dedup'), key('dedupEnds'), key('minutes:completed'), key('minutes:failed'))
  -- The limits of all groups stay while a session is open.
  local limits = settings and call('EXISTS', key('sessions')) == 1 and settings.groupActive + settings.groupMax > 0 and settings
  local hasMessages = call('EXISTS', key('outbox'), key('waiting-children')) > 0
  local hasGroups = limits or call('EXISTS', key('groups')) == 1
  settings = (hasMessages or hasGroups) and { $each{settings # = 0} } or nil
  for _, name in ipairs(limits and { 'groupActive', 'groupMax', 'groupMs' } or {}) do settings[name] = limits[name] end
  set('level', hasMessages and 6 or hasGroups and 5 or call('EXISTS', key('extra')) == 0 and 1 or 2)
  call('UNLINK', key('kin'), key('own-name'))
  -- A message that was applied may still arrive once more.
  call('PEXPIRE', key('inbox'), ADD_REMEMBERED_MS)
  offer()
end
save()
return went

-- name: forget-caller
-- use: clock tools
-- Forgets the last add of a caller. The caller has its reply and makes no more calls.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: caller.

return call('UNLINK', key('added:' .. ARGV[1]))

-- name: status
-- use: clock tools run-texts counters queue jobs marks entries
-- Reads the state of a queue.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: state of metrics (completed, failed or ''), number of priorities, the priorities, then deduplication ids.
-- Returns a list of four:
--   numbers      paused, the lengths of the lists (waiting, prioritized, delayed, active, completed, failed), `cap` (see
--                `counters`), blockedMs, used and endsInMs of the window (0 and 0 if none is open), rateMax and rateMs (see `counters`),
--                the length of waiting-children
--   owners       for each deduplication id the owner of its entry, 0 if no entry counts
--   priorities   the waiting jobs of each priority
--   metrics      count, minute, current and first of the state (see `minutes` in metrics.lua); empty if the queue does not count

local state, asked = ARGV[1], tonumber(ARGV[2])
local windowMs = math.max(0, queue.windowEnds - now)
local blockedMs = math.max(0, queue.limitedUntil - now)
local numbers = { queue.paused }
for i, list in ipairs({ 'wait', 'prio', 'delayed', '', 'completed', 'failed' }) do
  numbers[i + 1] = list == '' and queue.active or call('ZCARD', key(list))
end
for i, place in ipairs({ 'wait', 'prio' }) do numbers[i + 1] = numbers[i + 1] + call('ZCARD', key('behind:' .. place)) end
for _, number in ipairs({
  queue.cap, ceil(blockedMs), windowMs > 0 and queue.windowUsed or 0, ceil(windowMs), settings and settings.rateMax or 0,
  settings and settings.rateMs or 0,
}) do
  numbers[#numbers + 1] = number
end
numbers[#numbers + 1] = queue.level > 5 and call('ZCARD', key('waiting-children')) or 0

local priorities, owners, metrics = {}, {}, {}
for i = 1, asked do
  local priority = ARGV[2 + i]
  priorities[i] = priority == '0' and numbers[2]
    or call('ZCOUNT', key('prio'), priority, priority) + call('ZCOUNT', key('behind:prio'), priority, priority)
end
for i = 3 + asked, #ARGV do
  local entry = openEntries().counting(ARGV[i])
  owners[#owners + 1] = entry and entry.owner or 0
end
if state ~= '' and settings and settings.points > 0 then
  for i, field in ipairs({ 'Count', 'Minute', 'Current', 'First' }) do metrics[i] = settings[state .. field] end
end
return { numbers, owners, priorities, metrics }

-- name: watch
-- use: clock tools counters queue
-- Arms a queue: its next change of this kind is published.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: kind (jobs, locks or events).
-- Returns the version. A caller that knows an older version has missed a change.

local version, armed = 'version', 'armed'
if ARGV[1] ~= 'events' then version, armed = ARGV[1] .. 'Version', ARGV[1] .. 'Armed' end
if queue[armed] == 0 then
  set(armed, 1)
  save()
end
return digits(queue[version])
