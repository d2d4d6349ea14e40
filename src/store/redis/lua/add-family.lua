-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks marking families entries schedules locks leave arrivals family-steps
-- Adds jobs with parents or children, as a whole or not at all. A repeated call (same caller and seq) returns the first reply and adds nothing.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: caller, seq, name of the queue, refusals, number of jobs that this script adds, number of known jobs, head, then
--   for each job that this script adds   its number in the call, and the reply between it and the next one
--   for each known job of other queues   1 or 0 if it exists or not, and queue LF id
--   the steps in this queue, see family-steps.lua. Their `e` steps add these jobs, in order. If the id is empty, the queue counts one up.
--   refusals   a letter for each job of the call: p or q if the store refuses it, else -
--   head       the reply before the first job that this script adds
-- Returns one of three texts:
--   for each job a letter and its id, with NUL between: n new, d duplicate, p no parent, q another parent, r refused
--   `?` and jobs of other queues (queue LF id) that the caller has to look for, with NUL between
--   The first one ends with NUL, o and the name of each queue that got messages.
local caller, seq, refusals, size, knownSize = ARGV[1], ARGV[2], ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
family.name = ARGV[3]
local memory = key('added:' .. caller)
local last, remembered = match(call('GET', memory) or '0,', '^(%d*),(.*)$')
if tonumber(seq) < tonumber(last) then return straggler(caller, seq, last) end
if seq == last then return remembered end

-- here: the numbers of the jobs that this script adds. refused: reasons by the number of a job.
local here, between, known, refused = {}, {}, {}, {}
for i = 1, size do here[i], between[i] = tonumber(ARGV[6 + 2 * i]), ARGV[7 + 2 * i] end
local at = 8 + 2 * size
for _ = 1, knownSize do
  known[ARGV[at]:sub(2)] = ARGV[at]:sub(1, 1) == '1'
  at = at + 1
end
local steps = {}
for i = at, #ARGV do steps[#steps + 1] = ARGV[i] end

-- asked: jobs of other queues whose existence decides, and is not known.
local asked = {}
local function isLiving(parent)
  if parent.queue == family.name then return exists(parent.id) end
  local name = parent.queue .. '\n' .. parent.id
  if known[name] == nil then asked[#asked + 1] = name end
  return known[name]
end

-- Notes which jobs the store refuses. It reads only.
local function check()
  local before, number = {}, 0
  for first = 1, #steps, STEP_WIDTH do
    local kind, a, _, _, d, e = unpack(steps, first, first + STEP_WIDTH - 1)
    if kind == 'k' and not before[a] and not exists(a) then
      refused[tonumber(e)] = 'p'
    elseif kind == 'e' then
      number = number + 1
      local job = here[number]
      if a ~= '' then before[a] = true end
      if a ~= '' and family.has(family.marksIn(d), CHILD) and e:sub(1, 1) == '0' and not refused[job] then
        for _, other in ipairs(otherParents(a, family.parentsOf(family.parse(d)), e)) do
          if isLiving(other) then refused[job] = 'q' end
        end
      end
    end
  end
end

check()
if #asked > 0 then return '?' .. concat(asked, '\0') end

-- Gives ids to jobs that have none, for the links that come before them. The other parents of all jobs were checked.
local ids = {}
local function countIds()
  local number = 0
  for first = 1, #steps, STEP_WIDTH do
    if steps[first] == 'e' then
      number = number + 1
      if steps[first + 1] == '' then
        repeat
          set('lastId', queue.lastId + 1)
        until not exists(digits(queue.lastId))
        steps[first + 1] = digits(queue.lastId)
      end
      ids[tostring(here[number])] = steps[first + 1]
      steps[first + 5] = '1' .. steps[first + 5]:sub(2)
    end
  end
end

-- Returns the reply. replyOf: returns the part of the n-th job that this script adds.
local function wholeReply(replyOf)
  local parts = { ARGV[7] }
  for i = 1, size do
    parts[#parts + 1] = replyOf(i)
    parts[#parts + 1] = between[i]
  end
  return concat(parts)
end

-- Returns the reply of a call that is refused.
local function refusal()
  local ids, replies, number = {}, {}, 0
  for first = 1, #steps, STEP_WIDTH do
    if steps[first] == 'e' then ids[#ids + 1] = steps[first + 1] end
  end
  for part in string.gmatch(wholeReply(function(i) return 'n' .. ids[i] end) .. '\0', '([^%z]*)%z') do
    number = number + 1
    local letter = match(refusals:sub(number, number), '[pq]') or refused[number] or 'r'
    replies[number] = letter .. part:sub(2)
  end
  return concat(replies, '\0')
end

local reply
if string.find(refusals, '[pq]') or next(refused) then
  reply = refusal()
else
  countIds()
  local replies = {}
  takeSteps(steps, 1, ids, function(id, added) replies[#replies + 1] = (added and 'n' or 'd') .. id end)
  reply = wholeReply(function(i) return replies[i] end)
end
writeCounts()
flushPlaces()
-- A repeated call waits for the delivery too.
for _, name in ipairs(receivers() or {}) do reply = reply .. '\0o' .. name end
call('SET', memory, seq .. ',' .. reply, 'PX', ADD_REMEMBERED_MS)
save()
return reply
