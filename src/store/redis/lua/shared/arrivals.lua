-- Applies what the jobs of a family mean for this queue: for messages of other queues, and for adds in this one.
-- Messages, by letter (see outbox.lua). The child or parent that a message does not name is in the sending queue.
--   c   parent, bond, child, instruction (see family-ends.lua), text   the child has ended or was removed
--   o   parent, bond, child                                             the finished child waits again
--   d   number, letter and texts of c or o                              as these, with the number of an earlier message
--   t   key, number, child, state (c, f, r or o), text                  goes on telling the parents of a child (own queue)
--   x   child, parent, 1 or 0                                           parts the child from the parent; 1: removes it, if it has no other parent
--   w   parent, key                                                     goes on parting children from a removed parent (own queue)
--   b   a list of steps (see family-steps.lua)                          adds jobs and links
--   l   id, fence, reason, made, failedOn, priority and key or group, deadLetter, text   a dead letter
--   s   id, id of the letter, flags, extra, text                        a job that was a dead letter
local family = openFamily()

-- The counts of links, by parent. They are written at the end of the script.
local counted = {}
local COUNTED = { 'p', 'd', 'f', 'i', 'h' }

local function countsOf(id)
  local counts = counted[id]
  if counts then return counts end
  counts = { links = key('links:' .. id), id = id }
  local numbers = call('HMGET', counts.links, '#p', '#d', '#f', '#i', '#h')
  for i, letter in ipairs(COUNTED) do counts[letter] = tonumber(numbers[i]) or 0 end
  counted[id] = counts
  return counts
end

local function writeCounts()
  for _, counts in pairs(counted) do
    if counts.changed and (counts.isHeld or call('EXISTS', counts.links) == 1) then
      call('HSET', counts.links, '#p', counts.p, '#d', counts.d, '#f', counts.f, '#i', counts.i, '#h', counts.h)
    end
  end
  counted = {}
end

-- Returns whether no child keeps a parent from going on.
local function isFree(counts) return counts.p == 0 and counts.h == 0 end

local function setLink(counts, field, before, state, bond, number, text)
  if before then counts[before] = counts[before] - 1 end
  counts[state], counts.changed = counts[state] + 1, true
  call('HSET', counts.links, field, state .. ',' .. bond .. ',' .. number .. '\0' .. text)
end

local function deleteLink(counts, field, before)
  counts[before], counts.changed = counts[before] - 1, true
  call('HDEL', counts.links, field)
  call('ZREM', key('kids:' .. counts.id), field)
end

-- Moves a parent that waits for children on.
local function releaseParent(id)
  local job = find(id)
  if not job or job.state ~= 'p' then return end
  leave(job)
  if job.delay ~= '0' then
    tell(1, 'Y', id, putDelayed(job, job.delay))
  else
    putWaiting(job, true)
    tell(1, 'W', id, 'waiting-children')
  end
  store({ job })
end

-- Lets a worker fail the job. An active job keeps its run: the failed link refuses its completion.
local function doom(id, sender, child)
  local job = find(id)
  if not job or job.finished ~= '' or job.state == 'a' then return end
  local marks, fields = family.read(id)
  fields.x = { queue = sender, id = child }
  family.write(id, family.has(marks, DOOMED) and marks or marks + DOOMED, fields)
  job.marked = true
  if job.state ~= 'w' then
    local from = STATES[job.state]
    leave(job)
    putWaiting(job, true)
    if from == 'delayed' then tell(1, 'P', id) else tell(1, 'W', id, from) end
  end
  store({ job })
end

-- Returns the counts, the field and the state of the link that a message is about; nil if there is none, or if a later message has changed it.
local function linkFor(parent, bond, sender, child, number)
  local counts, field = countsOf(parent), sender .. '\n' .. child
  local state, itsBond, itsNumber = match(call('HGET', counts.links, field) or '', '^(%a),([^,]*),(%d*)')
  if not state or itsBond ~= bond or tonumber(itsNumber) >= tonumber(number) then return nil end
  return counts, field, state
end

local arrivals = {}

function arrivals.c(sender, number, body)
  local parent, bond, child, letters, text = match(body, '^([^%z]*)%z([^%z]*)%z([^%z]*)%z([^%z]*)%z(.*)$')
  local counts, field, before = linkFor(parent, bond, sender, child, number)
  -- A finished child that is retried has said so before, so the parent of a link that is not pending knows this end, or a later one.
  if not counts or before ~= 'p' then return end
  local state = letters:sub(1, 1)
  if state == 'r' then
    deleteLink(counts, field, before)
  else
    setLink(counts, field, before, state, bond, number, text)
  end
  if letters:sub(3, 3) == '1' then
    doom(parent, sender, child)
  elseif letters:sub(2, 2) == 'n' or isFree(counts) then
    releaseParent(parent)
  end
end

function arrivals.o(sender, number, body)
  local parent, bond, child = match(body, '^([^%z]*)%z([^%z]*)%z([^%z]*)$')
  local counts, field, before = linkFor(parent, bond, sender, child, number)
  if not counts then return end
  setLink(counts, field, before, 'p', bond, number, '')
  family.noteKin(sender ~= family.name and sender)
end

function arrivals.d(sender, _, body)
  local number, letter, texts = match(body, '^(%d+)%z(%a)%z(.*)$')
  return arrivals[letter](sender, number, texts)
end

function arrivals.t(_, _, body)
  family.tellNext(match(body, '^([^%z]*)%z(%d+)%z([^%z]*)%z(%a)%z(.*)$'))
  return 100
end

function arrivals.x(sender, _, body)
  local id, parent, removes = match(body, '^([^%z]*)%z([^%z]*)%z(%d)$')
  local job = find(id)
  if not job then return end
  local extra = call('HGET', key('extra'), id) or ''
  local marks, fields = family.parse(extra)
  local left, work = {}, 1 + floor(#extra / LONG_EXTRA * 5)
  for _, known in ipairs(family.parentsOf(marks, fields)) do
    if not family.isSame(known, { queue = sender, id = parent }) then left[#left + 1] = known end
  end
  family.setParents(id, marks, fields, left)
  if removes == '0' or #left > 0 or job.state == 'a' then return work end
  tell(1, 'V', id, STATES[job.state])
  family.partsChildren[id] = true
  remove(job)
  erase({ id })
end

function arrivals.w(_, _, body)
  local parent, rest = match(body, '^([^%z]*)%z([^%z]*)$')
  family.part(parent, key(rest))
  return 100
end

local function exists(id) return call('HEXISTS', key('run'), id) == 1 end

function arrivals.l(sender, _, body)
  local id, fence, reason, made, failedOn, priority, tail, to, text =
    match(body, '^([^%z]*)%z(%d*)%z([^%z]*)%z(%d*)%z(%d*)%z(%d*)([^%z]*)%z([^%z]*)%z(.*)$')
  local letter = sender .. ':' .. id .. ':' .. fence
  if exists(letter) then return end
  local origin = {
    queue = sender, id = id, failedReason = reason, attemptsMade = tonumber(made), failedOn = tonumber(failedOn),
    priority = tonumber(priority), deadLetter = to,
  }
  family.readTail(origin, tail)
  enterMarked(letter, '', text, '0,' .. cjson.encode({ o = origin }))
end

function arrivals.s(_, _, body)
  local id, letter, flags, extra, text = match(body, '^([^%z]*)%z([^%z]*)%z([^%z]*)%z([^%z]*)%z(.*)$')
  if exists(id) then id = letter end
  if exists(id) then return tell(1, 'U', id) end
  enterMarked(id, flags, text, extra)
end
