-- use: clock counters plain-add queue jobs lanes places
-- Adds jobs. A repeated call (same caller and seq) returns the first reply and adds nothing.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: caller, seq, size (number of jobs), then for each job: id ('': the queue counts one up), flags, text.
--   flags   priority,delayMs,lifo and, with a lock key, ,lockKey; '' means 0,0,0
--   If no job of the call has an id or flags, as in most calls, each job is its text alone.
-- Returns first,count if all ids were counted up without a gap; else for each job a letter (n new, d duplicate) and its id,
-- with NUL between jobs.
local caller, seq = ARGV[1], ARGV[2]
local memory = key('added:' .. caller)
local last, remembered = match(call('GET', memory) or '0,', '^(%d*),(.*)$')
if tonumber(seq) < tonumber(last) then return straggler(caller, seq, last) end
if seq == last then return remembered end

local size = tonumber(ARGV[3])
local bare = #ARGV == 3 + size
-- isRun: all ids are counted up without a gap, so no id needs a check of its own.
local wanted, counted, isRun = {}, queue.lastId, true
for i = 1, size do
  local id = bare and '' or ARGV[3 * i + 1]
  if id == '' then
    counted = counted + 1
    id = digits(counted)
  else
    isRun = false
  end
  wanted[i] = id
end
local known, texts = {}, fetch(key('run'), wanted)
for i = 1, size do
  if texts[i] then known[wanted[i]], isRun = true, false end
end

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
local ADDED = ',0,' .. digits(floor(now)) .. ',\0\0'
local PLAIN = 'w,,,0,,,0,0,0,0' .. ADDED
local runs, jobs, waits, replies, new, plain = {}, {}, {}, {}, 0, 0
local place = ticks(size)
for i = 1, size do
  local id, flags, text = wanted[i], '', ARGV[3 + i]
  if not bare then flags, text = ARGV[3 * i + 2], ARGV[3 * i + 3] end
  if not isRun and (bare or ARGV[3 * i + 1] == '') then id = nextId() end
  if known[id] then
    tell(1, 'U', id)
    replies[i] = 'd' .. id
  else
    if not isRun then
      known[id] = true
      replies[i] = 'n' .. id
    end
    local name, run = match(text, '^[^%z]*%z([^%z]*)'), PLAIN
    noteSize(#text)
    if flags == '' then
      waits[plain + 1], waits[plain + 2] = digits(place + i - 1), id
      plain = plain + 2
      tell(2, 'N', id, name)
    else
      local priority, delay, lifo, rest = match(flags, '^(%d*),(%d*),(%d)(.*)$')
      local job = { id = id, priority = priority, ord = '' }
      if rest ~= '' then
        job.key = rest:sub(2)
        if queue.keys == 0 then set('keys', 1) end
      end
      if delay ~= '0' then
        tell(2, 'D', id, name, putDelayed(job, delay))
      else
        local front = lifo == '1'
        putWaiting(job, front, not front and place + i - 1)
        tell(2, 'N', id, name)
      end
      run = job.state .. ',,,0,,' .. job.ord .. ',' .. job.delay .. ',0,0,' .. priority .. ADDED .. (job.key and '\0' .. job.key or '')
    end
    jobs[new + 1], jobs[new + 2] = id, text
    runs[new + 1], runs[new + 2] = id, run
    new = new + 2
  end
end
many('HSET', key('job'), jobs)
many('HSET', key('run'), runs)
many('ZADD', key('wait'), waits)
if plain > 0 then offer() end

local reply
if isRun then
  reply = digits(queue.lastId + 1) .. ',' .. size
else
  reply = concat(replies, '\0')
end
if lastId ~= queue.lastId then set('lastId', lastId) end
call('SET', memory, seq .. ',' .. reply, 'PX', ADD_REMEMBERED_MS)
flushPlaces()
save()
return reply
