-- Jobs: how they are stored and read.

-- part: run-texts
-- The run text of a job, which every state change rewrites:
--   state,seq,ends,timed,finished,ord,delay,made,started,priority,stalls,added,processed NUL token NUL by, and with a lock key NUL key,
--   with a group NUL NUL key of the group
--   state    w waiting, d delayed, a active, c completed, f failed, p waiting-children; a capital letter if the job is marked (see
-- `entries` in deduplication.lua)
--   seq      seq of the claim, while the job is active
--   ends     the lock's own end. timed 1: the lock ends then; timed 0: it lives as long as its session, and at least until `ends`
--   ord      the place as 16 digits, which begin the members of `prio` and of key groups; only while the job waits with a priority,
--            a lock key or a group
--   ends, finished, added, processed   ms on Redis' clock
--   token    session:fence of the owner; in a finished job, of the owner that finished it
--   by       `=` and processedBy, the name that the claim gave; empty if there is none
-- The fast paths do not decode run texts: they use these patterns and templates, which begin with a small letter. So a marked job fits a
-- fast path only if its group or its family is all that it is marked for (see `plain-settle` in settle.lua, `plain-settle` in settle.lua
-- and `plain-settle` in settle.lua).
-- A queue without lock keys (counter `keys`) need not look for a key; the others use `keyIn`.
-- NEW_RUN: a new job up to `stalls`. WAITS: captures `made,`, started, and `,priority,stalls,added`. GROUPED_WAITS: the same for a marked
-- job without a priority. HELD: captures ends, made, and the rest. HELD_UNDER: the seq of the claim, of any active job.
local NEW_RUN = '$run{state..stalls state=w timed=0 delay=0 made=0 started=0 priority=0 stalls=0},'
local WAITS = '^$run{state..delay state=w timed=%d *=%d*},(%d*,)(%d+)(,$run{priority..added *=%d*}),'
local GROUPED_WAITS = '^$run{state..delay state=W timed=%d *=%d*},(%d*,)(%d+)(,$run{priority..added priority=0 *=%d*}),'
local HELD_UNDER = '^$run{state..seq state=[aA] seq=(%d*)}'
local HELD = '^$run{state..delay state=a seq=%d* ends=(%d*) timed=%d delay=0},(%d*)(,[%d,]*%z)$'
-- Templates: `added` follows the first one, `made` the others.
local ENTERED_RUN = '$run{state..stalls state=%s timed=0 ord=%s delay=%s made=0 started=0 priority=%s stalls=0},'
local ACTIVE_RUN = '$run{state..delay state=a seq=%s ends=%s timed=%s delay=0},'
local FINISHED_RUN = '$run{state..delay state=%s timed=0 finished=%s delay=0},'

-- part: jobs
-- How a job is stored. A job is two texts: `job`, which rarely changes (timestamp, name, options, data), and `run`, which every state
-- change rewrites. Each kind of text is one hash with a field per job, so a batch needs one command (0.12 µs a job). With a hash per
-- job, each job would need its own command (0.6 µs). Texts that few jobs have are in their own hashes: reason, stack, progress, lost
-- and value. A value of null is not stored: many handlers return nothing, and a field of a hash is 0.6 µs of a settle.
-- `run-texts` describes the run text.
local RUN = '^$run{state..processed state=(%a) timed=(%d) *=(%d*)}%z([^%z]*)%z([^%z]*)(.*)$'

local function decode(id, text)
  local job, tail = { id = id }, ''
  $each{run job.#}, job.token, job.by, tail = match(text, RUN)
  if not tail then return job end
  local letter = job.state
  job.state = letter:lower()
  job.marked = letter ~= job.state
  if tail:byte(2) == 0 then job.group = tail:sub(3) elseif tail ~= '' then job.key = tail:sub(2) end
  return job
end

local function encode(job)
  local tail = job.key and '\0' .. job.key or job.group and '\0\0' .. job.group or ''
  local text = concat({ $each{run job.#} }, ',') .. '\0' .. job.token .. '\0' .. job.by .. tail
  return job.marked and text:sub(1, 1):upper() .. text:sub(2) or text
end

-- Returns what a claim returns of a run: made,started,priority,stalls,added,processed.
local function numbersOf(job)
  return concat({ job.made, job.started, job.priority, job.stalls, job.added, job.processed }, ',')
end

local function sessionOf(token) return match(token, '^(.*):%d+$') end

local function fenceOf(token) return match(token, '%d+$') end

local function find(id)
  local text = call('HGET', key('run'), id)
  return text and decode(id, text)
end

local function jobsOf(ids)
  local texts, jobs = fetch(key('run'), ids), {}
  for i = 1, #ids do
    if texts[i] then jobs[#jobs + 1] = decode(ids[i], texts[i]) end
  end
  return jobs
end

local function store(jobs)
  local runs = {}
  for i = 1, #jobs do runs[2 * i - 1], runs[2 * i] = jobs[i].id, encode(jobs[i]) end
  many('HSET', key('run'), runs)
end

-- Places may be below zero. With this bias, their 16 digits sort as the numbers do.
local ORD_BIAS = 4e15

local STATES = { w = 'waiting', d = 'delayed', a = 'active', c = 'completed', f = 'failed', p = 'waiting-children' }

-- part: marks
-- Bits of the marks of a job (see store/marks.ts), and its extras: see `entries` in deduplication.lua.
local CHILD, PARENT, UNIQUE, IS_NEXT, STEPS, DOOMED, LETTER, CANCELLED = 2, 4, 8, 16, 32, 64, 128, 256

-- Returns a field of the extras of a marked job; nil if the job lacks the bit that the field belongs to. extra: false if it has none.
local function extraOf(extra, bit, field)
  local marks, extras = match(extra or '0,', '^(%d+),(.*)$')
  if marks % (2 * bit) < bit then return nil end
  local ok, fields = pcall(cjson.decode, extras)
  return ok and fields[field] or nil
end

-- part: marking
-- Marks, extras, steps and cancels of jobs, made on first use: see `lanes` in keys.lua. Plain jobs must not pay for these functions.
local marking
local function openMarking()
  if marking then return marking end
  marking = {}
  -- Reads and writes the marks and extras of jobs (see store/marks.ts, and `entries` in deduplication.lua for the form of both).

  function marking.has(marks, bit) return marks % (2 * bit) >= bit end

  -- Returns the marks and extras of a text; 0 and an empty table for a plain job.
  function marking.parse(text)
    local marks, extras = match(text or '0,{}', '^(%d+),(.*)$')
    local ok, fields = pcall(cjson.decode, extras or '{}')
    return tonumber(marks) or 0, ok and fields or {}
  end

  function marking.read(id) return marking.parse(call('HGET', key('extra'), id)) end

  -- Returns the text that it has written.
  function marking.write(id, marks, fields)
    local text = digits(marks) .. ',' .. (next(fields) and cjson.encode(fields) or '{}')
    call('HSET', key('extra'), id, text)
    return text
  end
  -- The steps of jobs (see contract/steps.ts).
  --   steps:<job>   a hash, only of a job with the bit `steps`
  --     =<name>     number NUL value. The numbers grow in the order in which the steps were recorded
  --     #           the last number, the number of steps, and the bytes of their names and values, with commas between
  -- A process of an older version, which does not know steps, leaves the hash of a job behind that it removes. So the hash counts only if
  -- the job has the bit, and the first step of a job deletes what it finds.
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

  -- Records the step of an owner that delays the job. Returns why the delay is refused: r the signal that it awaits has come, f there is no
  -- room.
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
  -- Cancelled jobs (see `cancel` in contract/changing.ts). An active job that was cancelled has the bit `cancelled`, and the reason in its
  -- extras.

  -- Returns why a marked job was cancelled; nil if it was not.
  function marking.cancelled(job) return extraOf(call('HGET', key('extra'), job.id), CANCELLED, 'c') end

  -- Cancels an active job that was not cancelled before.
  function marking.cancel(job, reason)
    local marks, fields = marking.read(job.id)
    fields.c = reason
    marking.write(job.id, marks + CANCELLED, fields)
    -- In level 5, the fast path of settles takes a marked job of a group for one without other marks.
    raiseForMarks(queue.level == 5 and digits(CANCELLED) or '0')
    if job.marked then return end
    job.marked = true
    store({ job })
  end

  -- Lets a job be one that was not cancelled. Returns its marks and extras as a text.
  function marking.clearCancel(id, extra)
    local marks, fields = marking.parse(extra)
    fields.c = nil
    return marking.write(id, marks - CANCELLED, fields)
  end
  return marking
end

-- part: records
-- Reads job records as columns: ids, runs, jobs, reasons, stacks, values, progress, losses, extras (empty without marked jobs).
local COLUMNS = { 'run', 'job', 'reason', 'stack', 'value', 'progress', 'lost' }

-- Returns the records of the first jobs that fit into `left` bytes, and their size in bytes. If `left` is a whole reply, at least one
-- record is returned. The large texts are measured before any text is copied.
local function records(ids, left)
  left = left or REPLY_BYTES
  local fitting, bytes = {}, 0
  for i = 1, #ids do
    local size = call('HSTRLEN', key('job'), ids[i]) + call('HSTRLEN', key('value'), ids[i])
      + call('HSTRLEN', key('stack'), ids[i]) + call('HSTRLEN', key('progress'), ids[i])
    if bytes + size > left and (i > 1 or left < REPLY_BYTES) then break end
    bytes = bytes + size
    fitting[i] = ids[i]
  end
  local columns = { fitting }
  for i = 1, #COLUMNS do columns[i + 1] = fetch(key(COLUMNS[i]), fitting) end
  local marked = false
  for i = 1, #fitting do marked = marked or columns[2][i] and match(columns[2][i], '^%u') end
  columns[#columns + 1] = marked and fetch(key('extra'), fitting) or {}
  return columns, bytes
end

-- name: jobs
-- use: clock tools records
-- Reads jobs by id.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: bytes, the byte budget of the records, then the job ids.
-- Returns the records of the first jobs that fit the budget (columns: see `records`), and their size in bytes.

local ids = {}
for i = 2, #ARGV do ids[i - 1] = ARGV[i] end
return { records(ids, tonumber(ARGV[1])) }

-- name: list
-- use: clock tools records
-- Lists the jobs of one list that is not the active one. In ascending order, jobs that wait for their lock key and
-- jobs of groups come last.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: list, the suffix of its key (members:<key> for a group); first and last position (negative: from the end, -1 is the last);
--   ascending (1 or 0); most, the jobs to return at most; bytes, the byte budget of the records.
-- Returns the position to continue from (-1: the range has ended), 1 if the budget cut the page, the records (columns: see
-- `records`) and their size in bytes.

local ascending, parts = ARGV[4] == '1', { ARGV[1] }
if ARGV[1] == 'wait' or ARGV[1] == 'prio' then table.insert(parts, ascending and 2 or 1, 'behind:' .. ARGV[1]) end
local sizes, size = {}, 0
for i = 1, #parts do
  sizes[i] = call('ZCARD', key(parts[i]))
  size = size + sizes[i]
end
local first, last = tonumber(ARGV[2]), tonumber(ARGV[3])
if first < 0 then first = math.max(0, size + first) end
if last < 0 then last = size + last else last = math.min(last, size - 1) end
local upTo = math.min(last, first + ARGV[5] - 1)
if upTo < first then return { -1, 0, records({}) } end
-- A member of `prio` or of a group begins with the 16 digits of its place, so the id begins at 17.
local named, ids, skipped = (ARGV[1] == 'prio' or match(ARGV[1], '^members:')) and 17 or 1, {}, 0
for i = 1, #parts do
  local from, to = math.max(first - skipped, 0), math.min(upTo - skipped, sizes[i] - 1)
  if from <= to then
    local members = call(ascending and 'ZRANGE' or 'ZREVRANGE', key(parts[i]), from, to)
    for j = 1, #members do ids[#ids + 1] = members[j]:sub(named) end
  end
  skipped = skipped + sizes[i]
end
local columns, bytes = records(ids, tonumber(ARGV[6]))
local cut = #columns[1] < #ids
if cut then upTo = first + #columns[1] - 1 end
return { upTo < last and upTo + 1 or -1, cut and 1 or 0, columns, bytes }

-- name: list-active
-- use: clock tools records active-locks
-- Lists active jobs by fence, one page per call.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: skip, positions to skip; after, the fence to continue after ('': start at the beginning of the list); ascending (1 or 0);
--   most, the jobs to return at most; bytes, the byte budget of the records.
-- Returns how many positions it skipped, the fence to continue after ('': the list has ended), 1 if the budget cut the page,
-- the records (columns: see `records`) and their size in bytes.

local skip, most = tonumber(ARGV[1]), tonumber(ARGV[4])
local found, more = locksAfter(ARGV[2], ARGV[3] == '1')
local skipped, ids, last = 0, {}, nil
for i = 1, #found do
  local lock = found[i]
  if #ids == most then
    more = true
    break
  end
  if skipped < skip then skipped = skipped + 1 else ids[#ids + 1] = lock.id end
  last = lock
end
local columns, bytes = records(ids, tonumber(ARGV[5]))
return { skipped, more and last and digits(last.fence) or '', #columns[1] < #ids and 1 or 0, columns, bytes }

-- name: logs
-- use: clock tools
-- Reads log rows of a job.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: job id, first and last position (negative: from the end, -1 is the last), ascending (1 or 0).
-- Returns the number of all rows, and the rows of the range in the requested order. Only as many rows are returned as fit into a
-- reply, at least one.

local log = key('log:' .. ARGV[1])
local size = call('LLEN', log)
local first, last = tonumber(ARGV[2]), tonumber(ARGV[3])
if first < 0 then first = math.max(0, size + first) end
if last < 0 then last = size + last else last = math.min(last, size - 1) end
if last < first then return { size, {} } end
local STEP, rows, left = 20, {}, REPLY_BYTES
while first <= last do
  local upTo, part = math.min(last, first + STEP - 1), nil
  if ARGV[4] == '1' then part = call('LRANGE', log, first, upTo) else part = call('LRANGE', log, -1 - upTo, -1 - first) end
  for i = 1, #part do
    local row = part[ARGV[4] == '1' and i or #part + 1 - i]
    left = left - #row
    if left < 0 and #rows > 0 then return { size, rows } end
    rows[#rows + 1] = row
  end
  first = upTo + 1
end
return { size, rows }

-- part: active-locks
-- Reads active jobs by fence. The locks are sorted by fence within each session; `locksAfter` merges all sessions.
-- A call reads about LOOKED_AT locks, however many exist.
local LOOKED_AT = 1000

-- Returns the locks (id and fence) that follow the fence `after` ('': from the beginning), and whether there are more.
local function locksAfter(after, ascending)
  local sets = {}
  for _, session in ipairs(call('SMEMBERS', key('holders'))) do
    sets[#sets + 1] = key('bound:' .. session)
    sets[#sets + 1] = key('ending:' .. session)
  end
  local function comesBefore(a, b)
    if ascending then return a.fence < b.fence end
    return a.fence > b.fence
  end
  local command, from, to = 'ZRANGEBYSCORE', '-inf', '+inf'
  if not ascending then command, from, to = 'ZREVRANGEBYSCORE', '+inf', '-inf' end
  if after ~= '' then from = '(' .. after end
  local each = ceil(LOOKED_AT / math.max(1, #sets)) + 1
  -- horizon: the earliest last lock that was read from a set with more locks. The unread locks of that set may come before locks of
  -- other sets behind the horizon. So this call returns nothing behind the horizon; the next call does.
  local found, horizon = {}, nil
  for i = 1, #sets do
    local part = call(command, sets[i], from, to, 'WITHSCORES', 'LIMIT', 0, each)
    for j = 1, #part, 2 do found[#found + 1] = { id = part[j], fence = tonumber(part[j + 1]) } end
    if #part == 2 * each then
      local last = found[#found]
      if not horizon or comesBefore(last, horizon) then horizon = last end
    end
  end
  table.sort(found, comesBefore)
  while horizon and comesBefore(horizon, found[#found]) do found[#found] = nil end
  return found, horizon ~= nil
end

-- part: places
-- The places of jobs that are not active, by state. Each place is a sorted set:
--   wait      waiting jobs without a priority, by place number: at the back these are ticks, at the front numbers below zero
--   prio      waiting jobs by priority, then by place number, which begins the member so that Redis sorts equal scores by it
--   delayed   by the tick of adding plus the delay in µs, so jobs of one moment keep their order
--   completed, failed   by the tick of finishing, which is the time in µs
-- Scripts put jobs into places and pull them out one by one; `flushPlaces` writes all of this together before a place is read, first
-- what was pulled. Waiting jobs with a lock key: see `lanes` in keys.lua. Those of groups: see groups.lua.
local placed, anyPlaced, pulled = { wait = {}, prio = {}, delayed = {} }, false, nil

local function put(place, score, member)
  local list = placed[place]
  list[#list + 1] = score
  list[#list + 1] = member
  anyPlaced = true
end

local function flushPlaces()
  if lanes then lanes.arrange() end
  if groups then groups.flush() end
  for place, list in pairs(pulled or {}) do many('ZREM', key(place), list) end
  pulled = nil
  if not anyPlaced then return end
  for place, list in pairs(placed) do
    many('ZADD', key(place), list)
    placed[place] = {}
  end
  anyPlaced = false
end

local function pull(place, member)
  if anyPlaced then flushPlaces() end
  pulled = pulled or {}
  pulled[place] = pulled[place] or {}
  table.insert(pulled[place], member)
end

-- Makes a job wait: at the place `given`, else in front of all jobs (`front`), else behind all jobs.
local function putWaiting(job, front, given)
  local place
  if given then
    place = given
  elseif front then
    place = queue.front - 1
    set('front', place)
  else
    place = ticks(1)
  end
  job.state, job.delay = 'w', '0'
  if job.key then
    job.ord = openLanes().lineUp(job, place)
    return
  elseif job.group then
    job.ord = openGroups().lineUp(job, place)
    return
  end
  offer()
  if job.priority == '0' then
    put('wait', digits(place), job.id)
  else
    job.ord = format('%016.0f', place + ORD_BIAS)
    put('prio', job.priority, job.ord .. job.id)
  end
end

-- Delays a job. Returns the time at which it is due, in ms, for the event.
local function putDelayed(job, delayMs)
  job.state, job.delay = 'd', delayMs
  put('delayed', digits(ticks(1) + delayMs * 1000), job.id)
  set('delays', 1)
  offer()
  return digits(ceil(now + delayMs))
end

-- Returns the time at which the next delayed job is due, in µs; nil if there is none.
local function nextDue()
  flushPlaces()
  if queue.delays == 0 then return nil end
  local due = tonumber(call('ZRANGE', key('delayed'), 0, 0, 'WITHSCORES')[2])
  if not due then set('delays', 0) end
  return due
end

-- Returns whether any job waits, or is delayed and due.
local function anyWaiting()
  local due = nextDue()
  return (due ~= nil and due <= micros) or call('EXISTS', key('wait'), key('prio')) > 0 or anyBehind()
end
