-- use: clock run-texts counters plain-add plain-save tools queue jobs groups lanes keys places enter marks marking families entries schedules locks leave
-- Adds jobs. A repeated call (same caller and seq) returns the first reply and adds nothing.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: caller, seq, size (number of jobs), then for each job: id ('': the queue counts one up), flags, text, extra, mode.
--   flags   priority,delayMs,lifo and, with a lock key, a comma and the key, with a group, a semicolon and its key; '' means 0,0,0
--   extra   marks and extras of a marked job (see deduplication.lua), else ''
--   mode    deduplication of the job: ttlMs,extend,replaceDelayed,keepLastIfActive,id ('': no ttlMs, 1 or 0 for the next three), else ''
--   If no job of the call is marked, extra and mode are left out. If no job has an id or flags either, as in most calls, each job is its
--   text alone.
-- Returns first,count if all ids were counted up without a gap; else for each job a letter (n new, d duplicate, u deduplicated: the id is that
-- of the owner) and its id,
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
