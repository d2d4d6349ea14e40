-- Adding jobs.

-- part: enter
-- Puts a new job into the queue. The caller stores its texts.
local function nameIn(text) return match(text, '^[^%z]*%z([^%z]*)') end

-- flags: see `add`. The job waits at `place`, unless it is delayed or goes to the front. Returns its run text.
local function enter(id, flags, text, place, marked)
  local priority, delay, lifo, rest = match(flags == '' and '0,0,0' or flags, '^(%d*),(%d*),(%d)(.*)$')
  local job = { id = id, priority = priority, ord = '' }
  noteSize(#text)
  if rest:sub(1, 1) == ';' then
    job.group = rest:sub(2)
    openGroups()
  elseif rest ~= '' then
    job.key = rest:sub(2)
    if queue.keys == 0 then set('keys', 1) end
  end
  if delay ~= '0' then
    tell(2, 'D', id, nameIn(text), putDelayed(job, delay))
  else
    putWaiting(job, lifo == '1', lifo ~= '1' and place)
    tell(2, 'N', id, nameIn(text))
  end
  local letter = marked and job.state:upper() or job.state
  local tail = job.key and '\0' .. job.key or job.group and '\0\0' .. job.group or ''
  return format(ENTERED_RUN, letter, job.ord, job.delay, priority) .. digits(floor(now)) .. ',\0\0' .. tail
end

-- Raises the level of a queue with a marked job, as far as its marks need. Processes of versions that do not know them must not touch the
-- queue any more.
local function raiseForMarks(extra)
  if queue.level < 2 then set('level', 2) end
  -- Parents, children, and jobs with a letter: see families.lua.
  local marks = queue.level < 6 and tonumber(match(extra, '^%d+'))
  if not marks or marks < 64 and marks % 8 < 2 then return end
  settings = settings or { $each{settings # = 0} }
  set('level', 6)
end

-- Puts a new marked job into the queue and stores it at once: deduplication looks at the owner of an entry.
local function enterMarked(id, flags, text, extra, place)
  call('HSET', key('run'), id, enter(id, flags, text, place, true))
  call('HSET', key('job'), id, text)
  call('HSET', key('extra'), id, extra)
  raiseForMarks(extra)
end

-- part: plain-add
-- Fast path for most adds, in a straight line as in `plain-settle` in settle.lua: jobs without a given id, priority, delay, lifo and lock
-- key.
-- If a call does not fit the fast path, it leaves before it has changed anything, and `add` carries the call out.
-- More than a thousand jobs would not fit on Lua's stack.
-- Gain: without it, an add takes 1.16 × the processor time (node bench/fast-paths.mjs plain-add).
local reply, told, events, offers = nil, { nil, nil, nil }, 0, true
if #ARGV == 3 + ARGV[3] and #ARGV > 3 and #ARGV <= 1003 then
  repeat
    local size = #ARGV - 3
    local memory, run = base .. ':added:' .. ARGV[1], base .. ':run'
    local last = match(call('GET', memory) or '0', '^%d*')
    if tonumber(ARGV[2]) <= tonumber(last) then break end

    local added = NEW_RUN .. format(DIGITS, floor(now)) .. ',\0\0'
    local place = tick < micros and micros or tick + 1
    -- Tables begin with room for one job, because a table that grows is reallocated.
    local ids, runs, jobs, waits = { nil }, { nil, nil }, { nil, nil }, { nil, nil }
    for i = 1, size do
      local id, text = format(DIGITS, lastId + i), ARGV[3 + i]
      ids[i] = id
      if #text > largest then largest = #text end
      jobs[2 * i - 1], jobs[2 * i] = id, text
      runs[2 * i - 1], runs[2 * i] = id, added
      waits[2 * i - 1], waits[2 * i] = format(DIGITS, place + i - 1), id
      told[3 * i - 2], told[3 * i - 1], told[3 * i] = 'N', id, match(text, '^[^%z]*%z([^%z]*)')
    end
    -- If a user gave one of these ids to a job before, `add` skips that id.
    if size == 1 then
      if call('HSETNX', run, ids[1], added) == 0 then break end
    else
      local known, anyKnown = call('HMGET', run, unpack(ids)), false
      for i = 1, size do anyKnown = anyKnown or known[i] end
      if anyKnown then break end
      call('HSET', run, unpack(runs))
    end
    call('HSET', base .. ':job', unpack(jobs))
    call('ZADD', base .. ':wait', unpack(waits))
    tick, lastId, events = place + size - 1, lastId + size, 2 * size
    reply = ids[1] .. ',' .. ARGV[3]
    call('SET', memory, ARGV[2] .. ',' .. reply, 'PX', ADD_REMEMBERED_MS)
  until true
end

-- name: add
-- use: clock run-texts counters plain-add plain-save tools queue jobs groups lanes keys places enter marks marking families entries schedules locks leave
-- Adds jobs. A repeated call (same caller and seq) returns the first reply and adds nothing.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: caller, seq, size (number of jobs), then for each job: id ('': the queue counts one up), flags, text, extra, mode.
--   flags   priority,delayMs,lifo and, with a lock key, a comma and the key, with a group, a semicolon and its key; '' means 0,0,0
--   extra   marks and extras of a marked job (see `entries` in deduplication.lua), else ''
--   mode    deduplication of the job: ttlMs,extend,replaceDelayed,keepLastIfActive,id ('': no ttlMs, 1 or 0 for the next three), else ''
--   If no job of the call is marked, extra and mode are left out. If no job has an id or flags either, as in most calls, each job is its
--   text alone.
-- Returns first,count if all ids were counted up without a gap; else for each job a letter (n new, d duplicate, u deduplicated: the id is
-- that of the owner) and its id,
-- with NUL between jobs. If the script has sent messages, NUL, o and the name of each receiving queue follow.

local caller, seq = ARGV[1], ARGV[2]
local memory = key('added:' .. caller)
local last, remembered = match(call('GET', memory) or '0,', '^(%d*),(.*)$')
if tonumber(seq) < tonumber(last) then return straggler(caller, seq, last) end
if seq == last then return remembered end

local size = tonumber(ARGV[3])
-- width: the arguments of a job. bare: its text alone.
local width = (#ARGV - 3) / size
local bare = width == 1
-- isRun: all ids are counted up without a gap, so no id needs a check of its own.
local known, counted, isRun = {}, queue.lastId, width < 5

-- Returns the ids of the call, and notes which of them exist. An id that is counted up may still have to give way to `nextId`.
local function readIds()
  local ids = {}
  for i = 1, size do
    ids[i] = bare and '' or ARGV[4 + width * (i - 1)]
    if ids[i] == '' then
      counted = counted + 1
      ids[i] = digits(counted)
    else
      isRun = false
    end
  end
  local texts = fetch(key('run'), ids)
  for i = 1, size do
    if texts[i] then known[ids[i]], isRun = true, false end
  end
  return ids
end

local ids = readIds()
-- nextId skips a number that a user has given to a job as its id. Otherwise the new job would be dropped as a duplicate.
local lastId = isRun and counted or queue.lastId
local function nextId()
  local id
  repeat
    lastId = lastId + 1
    id = digits(lastId)
  until not known[id] and (lastId <= counted or call('HEXISTS', key('run'), id) == 0)
  return id
end

-- Most jobs have no priority, delay, lifo and lock key. The script writes all of these to `wait` in one command.
local PLAIN = NEW_RUN .. digits(floor(now)) .. ',\0\0'
local runs, jobs, waits, extras, replies = {}, {}, {}, {}, {}
local place = ticks(size)

-- Adds the job `i` of the call, which is new. extra: '' if the job is not marked.
local function addNew(i, id, flags, text, extra)
  local run, at = PLAIN, #runs
  if flags == '' and extra == '' then
    noteSize(#text)
    waits[#waits + 1], waits[#waits + 2] = digits(place + i - 1), id
    tell(2, 'N', id, nameIn(text))
  else
    run = enter(id, flags, text, place + i - 1, extra ~= '')
  end
  if extra ~= '' then
    extras[#extras + 1], extras[#extras + 2] = id, extra
    raiseForMarks(extra)
  end
  jobs[at + 1], jobs[at + 2] = id, text
  runs[at + 1], runs[at + 2] = id, run
end

-- Adds the job `i` of the call, which has deduplication, or finds the job that stands for it. Returns its part of the reply.
local function addUnique(i, id, at)
  local given, flags, text, extra = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local ttlMs, extend, replace, keep, name = match(ARGV[at + 4], '^(%d*),(%d),(%d),(%d),(.*)$')
  local ends = ttlMs ~= '' and ceil(now + ttlMs) or nil
  local entry, owner = openEntries().counting(name)
  if entry and replace == '1' and owner and owner.state == 'd' then
    tell(1, 'V', owner.id, 'delayed')
    remove(owner)
    erase({ owner.id })
    known[owner.id] = nil
    tell(1, 'J', id, name, owner.id)
    entry, ends = nil, extend == '1' and ends or entry.ends
  end
  if not entry then
    enterMarked(id, flags, text, extra, place + i - 1)
    entries.set(name, id, ends)
    known[id] = true
    return 'n' .. id
  end
  if keep == '1' and owner and owner.state == 'a' then
    -- The draft must not be lost before the owner ends, so the entry loses its own end.
    entries.set(name, entry.owner, nil, concat({ given, flags, extra, text }, '\0'))
  elseif extend == '1' and ends and entry.draft == '' then
    entries.set(name, entry.owner, ends)
  end
  tell(1, 'J', entry.owner, name, id)
  return 'u' .. entry.owner
end

for i = 1, size do
  local id, at = ids[i], 4 + width * (i - 1)
  if not isRun and (bare or ARGV[at] == '') then id = nextId() end
  if known[id] then
    tell(1, 'U', id)
    replies[i] = 'd' .. id
  elseif width == 5 and ARGV[at + 4] ~= '' then
    replies[i] = addUnique(i, id, at)
  else
    if not isRun then
      known[id] = true
      replies[i] = 'n' .. id
    end
    addNew(i, id, bare and '' or ARGV[at + 1], ARGV[bare and at or at + 2], width == 5 and ARGV[at + 3] or '')
  end
end
many('HSET', key('job'), jobs)
many('HSET', key('run'), runs)
many('HSET', key('extra'), extras)
many('ZADD', key('wait'), waits)
if #waits > 0 then offer() end

local reply = isRun and digits(queue.lastId + 1) .. ',' .. size or concat(replies, '\0')
if lastId ~= queue.lastId then set('lastId', lastId) end
call('SET', memory, seq .. ',' .. reply, 'PX', ADD_REMEMBERED_MS)
flushPlaces()
save()
for _, name in ipairs(receivers() or {}) do reply = reply .. '\0o' .. name end
return reply
