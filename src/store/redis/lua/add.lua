-- use: queue jobs places
-- ARGV: caller, its seq, how many jobs, and of each: id or '', priority,delay,lifo (or '' for 0,0,0), the job text.
-- Answers which ids they got: first,count for a run of counted ids, else a letter (n new, d duplicate) and the id of each, joined by NUL.
local caller, seq = ARGV[1], ARGV[2]
local REMEMBERED_MS = 15 * 60 * 1000
local memory = key('added:' .. caller)
local last, remembered = match(call('GET', memory) or '0,', '^(%d*),(.*)$')
if tonumber(seq) < tonumber(last) then return { err = 'HOLDFAST STRAGGLER ' .. last } end
if seq == last then return remembered end

local size = tonumber(ARGV[3])
local ids, counted = {}, queue.lastId
for i = 1, size do
  local id = ARGV[3 * i + 1]
  if id == '' then
    counted = counted + 1
    id = digits(counted)
  end
  ids[i] = id
end
local known, texts = {}, fetch(key('run'), ids)
for i = 1, size do
  if texts[i] then known[ids[i]] = true end
end

-- An id of the user's that looks like ours is stepped over: the new job must not vanish as its duplicate.
local lastId = queue.lastId
local function nextId()
  local id
  repeat
    lastId = lastId + 1
    id = digits(lastId)
  until not known[id] and (lastId <= counted or call('HEXISTS', key('run'), id) == 0)
  return id
end

local added = digits(floor(now))
local PLAIN = 'w,0,,0,0,0,0,' .. added .. ',,,,,,0\0\0'
local runs, jobs, waits, replies = {}, {}, {}, {}
local firstPlace, isRun = ticks(size), true
for i = 1, size do
  local given, flags, text = ARGV[3 * i + 1], ARGV[3 * i + 2], ARGV[3 * i + 3]
  local id = given
  if given == '' then id = nextId() else isRun = false end
  if known[id] then
    tell(1, 'U', id)
    replies[i] = 'd' .. id
  else
    known[id] = true
    replies[i] = id
    local name = match(text, '^[^%z]*%z([^%z]*)')
    local run = PLAIN
    if flags == '' then
      waits[#waits + 1], waits[#waits + 2] = digits(firstPlace + i - 1), id
      tell(2, 'N', id, name)
    else
      local job = decode(id, PLAIN)
      local delay, lifo
      job.priority, delay, lifo = match(flags, '^(%d*),(%d*),(%d)$')
      if delay ~= '0' then
        putDelayed(job, delay)
        tell(2, 'D', id, name, delay)
      else
        -- What was collected so far waits ahead of it.
        putWaiting(job, lifo == '1')
        tell(2, 'N', id, name)
      end
      run = encode(job)
    end
    runs[2 * #jobs + 1] = nil
    jobs[#jobs + 1], jobs[#jobs + 2] = id, text
    runs[#runs + 1], runs[#runs + 2] = id, run
  end
end
many('HSET', key('job'), jobs)
many('HSET', key('run'), runs)
many('ZADD', key('wait'), waits)
if lastId ~= queue.lastId then set('lastId', lastId) end

local reply
if isRun and lastId - size + 1 == tonumber(ids[1]) then
  reply = ids[1] .. ',' .. size
else
  for i = 1, size do replies[i] = (replies[i]:sub(1, 1) == 'd') end
end
