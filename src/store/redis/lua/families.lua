-- Families: parents, children, and the messages between their queues.

-- part: families
-- Families and dead letters, made on first use: see `lanes` in keys.lua. Queues without them must not pay for these functions.
local family
local function openFamily()
  if family then return family end
  family = {}
  -- Messages to other queues, which may lie in other slots (the rule: see contract/families.ts). A script that changes a job writes what
  -- this means for jobs of other queues, and the store delivers it afterwards (`deliver`). A message to a job of the same queue goes the
  -- same way.
  --   outbox           the receiving queues, by the number of a message
  --   outbox:<queue>   the messages to a queue, a stream: the id of an entry is the number of its message and -0
  --   inbox            by sending queue: the number of the last message that was applied here. Only if it lies in another slot
  --   kin              the queues that children of waiting parents are in
  -- The numbers are ticks, so they grow across a failover too. A message is a letter and texts, with NUL between; `arrivals` lists them.
  family.receivers = {}
  local isReceiver = {}

  -- Sends the text of a message as it is. Long texts are not joined here, because each copy of them holds the server up.
  function family.sendText(to, text)
    local number = digits(ticks(1))
    if not isReceiver[to] then
      isReceiver[to] = true
      table.insert(family.receivers, to)
      call('ZADD', key('outbox'), 'NX', number, to)
    end
    call('XADD', key('outbox:' .. to), number .. '-0', 'm', text)
  end

  function family.send(to, ...) family.sendText(to, concat({ ... }, '\0')) end

  -- Returns whether messages wait that this script has not written.
  function family.isOwing() return call('ZCARD', key('outbox')) > #family.receivers end
  -- The marks and extras of jobs in families (see store/marks.ts).

  family.has, family.parse, family.read, family.write = openMarking().has, marking.parse, marking.read, marking.write
  local has = family.has

  -- Sets a bit of a job. `job` was read in this script.
  function family.mark(job, bit)
    local marks, fields = family.read(job.id)
    if not has(marks, bit) then family.write(job.id, marks + bit, fields) end
    if not job.marked then
      job.marked = true
      store({ job })
    end
    raiseForMarks(digits(bit))
  end

  -- Returns the marks in a text, without its extras, which may be long.
  function family.marksIn(text) return tonumber(match(text or '', '^%d+')) or 0 end

  function family.parentsOf(marks, fields) return has(marks, CHILD) and fields.p or {} end

  function family.isSame(a, b) return a.id == b.id and a.queue == b.queue end

  -- Keeps the name of the queue for jobs with many parents: see `tellParents` in `families`.
  function family.noteLong(extra)
    if #extra > LONG_EXTRA then call('SET', key('own-name'), family.name) end
  end

  function family.setParents(id, marks, fields, parents)
    if has(marks, CHILD) then marks = marks - CHILD end
    fields.p = #parents > 0 and parents or nil
    family.noteLong(family.write(id, #parents > 0 and marks + CHILD or marks, fields))
  end
  -- The effect of the end of a job on its parents and its children, and the outcomes that the children of a job refuse.
  --   links:<id>       of a parent, by child (queue LF id): state,bond,number NUL text
  --     state          p pending, d processed, f failed, i ignored
  --     bond           a text that the link and its child share. A message with another bond belongs to an earlier link of the same jobs
  --     number         the number of the last message that changed the link
  --     #p #d #f #i    fields that count the links of each state. #h: adds under way that will make more links: the parent does not go on
  --                    before. #q: the queues of the children, with LF between
  --   kids:<id>        the children of a parent, in the order of their bytes
  --   parting:<n>      the children of a removed parent whose removal is not finished
  --   telling:<n>      the parents that a job with many has still to tell of its end, a list of JSON texts
  --   own-name         the name of a queue in which a job has had many parents
  --   waiting-children   jobs by the tick at which they began to wait for their children
  -- The extras of a child hold its parents (p), each with its bond (n).
  local LINK_LETTERS = { processed = 'd', failed = 'f', ignored = 'i', removed = 'r' }
  local COMPLETED, REMOVED = 'dw0', 'rw0'
  -- PARTED_AT_ONCE: the children that one script parts from a removed parent.
  local PARTED_AT_ONCE = 100

  -- Returns the instruction as three letters: the new state of the link, release (n now, w when none is pending), doom (1 or 0).
  local function lettersOf(instruction)
    return LINK_LETTERS[instruction.link] .. (instruction.release == 'now' and 'n' or 'w') .. (instruction.doom and '1' or '0')
  end

  -- Notifies a parent of the end of a child. state: c completed, f failed, r removed, o waits again. number: nil, or that of an earlier
  -- message which this one stands for. Returns false if the failure has no instruction.
  local function tellParent(parent, id, state, text, number)
    local texts = { 'o', parent.id, parent.n, id }
    if state ~= 'o' then
      local letters = state == 'c' and COMPLETED or state == 'r' and REMOVED or parent.onFailure and lettersOf(parent.onFailure)
      if not letters then return false end
      texts = { 'c', parent.id, parent.n, id, letters, text }
    end
    if number then texts = { 'd', number, unpack(texts) } end
    family.sendText(parent.queue, concat(texts, '\0'))
    return true
  end
  family.tellEnd = tellParent

  -- Notifies a parent that its link is to be removed, if it is pending.
  function family.tellRemoval(parent, id) tellParent(parent, id, 'r', '') end

  -- Notifies the next parents of a list, and the others with a message to the own queue.
  function family.tellNext(list, number, id, state, text)
    local parents = call('LPOP', key(list))
    for _, parent in ipairs(parents and cjson.decode(parents).p or {}) do tellParent(parent, id, state, text, number) end
    if call('EXISTS', key(list)) == 1 then family.send(family.name, 't', list, number, id, state, text) end
  end

  -- Cuts the parents out of long extras, in texts of about LONG_EXTRA bytes. A parent ends where `},{"` and a letter follow: within a JSON
  -- string, the quote would end the string, and no letter follows then.
  local function cutParents(extra)
    local parts, first = {}, string.find(extra, '"p":[{"', 1, true) + 5
    while first do
      local last = string.find(extra, '},{"%a', first + LONG_EXTRA)
      parts[#parts + 1] = '{"p":[' .. (last and extra:sub(first, last) .. ']}' or extra:sub(first))
      first = last and last + 2
    end
    return parts
  end

  -- Notifies all parents of a job. Returns false if one of them is not told, or may not be.
  local function tellParents(id, extra, state, text)
    if not has(family.marksIn(extra), CHILD) then return true end
    local own = #extra > LONG_EXTRA and call('GET', key('own-name'))
    if own then
      -- The job may be gone, or have other parents, before all are told. The number puts its later messages behind this one.
      local number = digits(ticks(1))
      family.name = own
      many('RPUSH', key('telling:' .. number), cutParents(extra))
      family.tellNext('telling:' .. number, number, id, state, text)
      return state ~= 'f'
    end
    local all = true
    for _, parent in ipairs(family.parentsOf(family.parse(extra))) do all = tellParent(parent, id, state, text) and all end
    return all
  end

  -- Notifies the parents that a finished child waits again.
  function family.reopened(id) tellParents(id, call('HGET', key('extra'), id), 'o', '') end

  -- informed: children whose parents know of their end, so that a removal in the same script need not be told.
  local informed = {}

  -- Does what the end of a job means for other queues. how: state (c or f), text (the result or the reason), made, token of the run, and
  -- whether the job was cancelled: then it sends no letter.
  function family.ended(id, extra, how)
    local marks = family.marksIn(extra)
    if has(marks, DOOMED) then
      local _, fields = family.parse(extra)
      fields.x = nil
      extra = family.write(id, marks - DOOMED, fields)
    end
    if how.state == 'f' and has(marks, LETTER) and not how.isCancelled then
      local _, fields = family.parse(extra)
      family.sendLetter(id, fields.l, how)
    end
    informed[id] = tellParents(id, extra, how.state, how.text) or nil
  end

  -- Parts children from a removed parent. The first ones go at once, the others with messages to the own queue.
  function family.part(id, children)
    local count = call('ZCARD', children)
    local members = call('ZRANGE', children, 0, PARTED_AT_ONCE - 1)
    for i = 1, #members do
      local queueName, child = match(members[i], '^(.-)\n(.*)$')
      family.send(queueName, 'x', child, id, '1')
    end
    if count <= #members then return call('UNLINK', children) end
    call('ZREMRANGEBYRANK', children, 0, #members - 1)
    local rest = match(children, '(parting:%d+)$')
    if not rest then
      rest = 'parting:' .. digits(ticks(1))
      call('RENAME', children, key(rest))
    end
    family.send(family.name, 'w', id, rest)
  end

  -- partsChildren: jobs that are removed with their children.
  family.partsChildren = {}

  -- Does what the removal of jobs means for other queues. Call it before their texts are deleted. extras: marks and extras of the jobs.
  function family.erased(ids, extras)
    for i = 1, #ids do
      if extras[i] then
        local id, marks = ids[i], family.marksIn(extras[i])
        if not informed[id] then tellParents(id, extras[i], 'r', '') end
        if has(marks, PARENT) then
          if family.partsChildren[id] then family.part(id, key('kids:' .. id)) end
          call('UNLINK', key('kids:' .. id), key('links:' .. id))
        end
      end
    end
  end

  -- Returns why the children of a job refuse an outcome: u unsuccessful, p pending, r ready; nil if they do not. kind: c, or k (waits for
  -- children); child: the one child that it waits for, nil for all.
  function family.refusal(id, kind, child)
    local pending, failed, held, link = unpack(call('HMGET', key('links:' .. id), '#p', '#f', '#h', child or '#p'))
    if tonumber(failed or 0) > 0 then return 'u' end
    local waits = tonumber(pending or 0) + tonumber(held or 0) > 0
    if kind == 'c' then return waits and 'p' or nil end
    if child then waits = link and link:sub(1, 1) == 'p' end
    return not waits and 'r' or nil
  end

  -- Lets a job wait for its children. It keeps the delay that begins when they have ended. The caller stores the job.
  function family.await(job, delay)
    job.state, job.delay, job.marked = 'p', delay, true
    placed['waiting-children'] = placed['waiting-children'] or {}
    put('waiting-children', digits(ticks(1)), job.id)
    family.noteKin(call('HGET', key('links:' .. job.id), '#q'))
  end

  function family.noteKin(names)
    for name in string.gmatch(names or '', '[^\n]+') do call('SADD', key('kin'), name) end
  end
  -- Dead letters: a job that fails for good sends a copy to another queue.

  -- Call it before the texts of the job are deleted. how: see `family.ended`.
  function family.sendLetter(id, to, how)
    local job, text = find(id), call('HGET', key('job'), id)
    if not job or not text or not to then return end
    local tail = job.key and ',' .. job.key or job.group and ';' .. job.group or ''
    family.send(to, 'l', id, fenceOf(how.token), how.text, how.made, digits(floor(now)), job.priority .. tail, to, text)
  end

  -- Adds the lock key or the group of the job to the origin of its letter. tail: as `sendLetter` writes it.
  function family.readTail(origin, tail)
    if tail:sub(1, 1) == ',' then origin.lockKey = tail:sub(2) elseif tail ~= '' then origin.group = tail:sub(2) end
  end

  -- Sends a letter back: the job goes to the queue `to`, and the caller removes the letter. Returns false if the job is no letter.
  function family.sendBack(job, to)
    local _, fields = family.read(job.id)
    local origin, text = fields.o, call('HGET', key('job'), job.id)
    if not origin or not text then return false end
    local extras, marks = { l = origin.deadLetter, g = origin.group }, LETTER + (origin.group and 1 or 0)
    local tail = origin.lockKey and ',' .. origin.lockKey or origin.group and ';' .. origin.group or ''
    local flags = digits(origin.priority) .. ',0,0' .. tail
    family.send(to, 's', origin.id, job.id, flags, digits(marks) .. ',' .. cjson.encode(extras), text)
    return true
  end
  return family
end

-- Returns the queues that this script has sent messages to; nil if there are none.
local function receivers() return family and family.receivers[1] and family.receivers end

-- Returns them as the end of a text: each with NUL before it.
local function sentTo() return receivers() and '\0' .. concat(receivers(), '\0') or '' end

-- part: arrivals
-- Applies what the jobs of a family mean for this queue: for messages of other queues, and for adds in this one.
-- Messages, by letter (see `families`). The child or parent that a message does not name is in the sending queue.
--   c   parent, bond, child, instruction (see `families`), text   the child has ended or was removed
--   o   parent, bond, child                                             the finished child waits again
--   d   number, letter and texts of c or o                              as these, with the number of an earlier message
--   t   key, number, child, state (c, f, r or o), text                  goes on telling the parents of a child (own queue)
--   x   child, parent, 1 or 0                                           parts the child from the parent; 1: removes it, if it has no other
-- parent
--   w   parent, key                                                     goes on parting children from a removed parent (own queue)
--   b   a list of steps (see `family-steps`)                          adds jobs and links
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

-- Returns the counts, the field and the state of the link that a message is about; nil if there is none, or if a later message has changed
-- it.
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

-- part: family-steps
-- Carries out the steps that add jobs of a family. Each step has six texts:
--   k   parent, queue of the child, child, bond, number of the job in the call   links a job of this queue to a child
--   e   id, flags, text, extra, mode (see add.lua for the first ones)            adds a job, or gives its parents to a job that exists
--   n   queue, message (b and its list of steps)                                 sends steps to another queue, or to the own one
--   h   parent                                                                   holds a parent while steps that link it are under way
--   u   parent                                                                   ends that
-- mode: 1 or 0 if the job shares; 1 or 0 if it waits for children; then the parents that are known to be gone (queue LF id), with LF LF
-- between.
local STEP_WIDTH = 6

-- Returns the texts of a list that was packed into one text: their lengths with commas between, LF, and the texts.
local function unpackTexts(packedTexts)
  local lengths, texts = match(packedTexts, '^([%d,]*)\n'), {}
  local at = #lengths + 2
  for length in string.gmatch(lengths, '%d+') do
    texts[#texts + 1] = packedTexts:sub(at, at + length - 1)
    at = at + length
  end
  return texts
end

-- parentsMarked: jobs that have the bit `parent`.
local parentsMarked = {}

-- Links a parent to a child. A link that exists keeps its state and gets the new bond.
local function link(parent, childQueue, child, bond)
  if not parentsMarked[parent] then
    local job = find(parent)
    if not job then return end
    family.mark(job, PARENT)
    parentsMarked[parent] = true
  end
  local counts, field = countsOf(parent), childQueue .. '\n' .. child
  local known = call('HGET', counts.links, field)
  if known then
    local state, number, text = match(known, '^(%a),[^,]*,(%d*)%z(.*)$')
    return call('HSET', counts.links, field, state .. ',' .. bond .. ',' .. number .. '\0' .. text)
  end
  setLink(counts, field, nil, 'p', bond, '0', '')
  call('ZADD', key('kids:' .. parent), 0, field)
  counts.queues = counts.queues or call('HGET', counts.links, '#q') or '\n'
  if childQueue ~= family.name and not string.find(counts.queues, '\n' .. childQueue .. '\n', 1, true) then
    counts.queues = counts.queues .. childQueue .. '\n'
    call('HSET', counts.links, '#q', counts.queues)
    family.noteKin(childQueue)
  end
end

-- Returns the parents of a job that exists, other than those of the step and those that are known to be gone.
local function otherParents(id, given, mode)
  local others, gone, isGiven = {}, '\n\n' .. mode:sub(3) .. '\n\n', {}
  for i = 1, #given do isGiven[given[i].queue .. '\n' .. given[i].id] = true end
  for _, known in ipairs(family.parentsOf(family.read(id))) do
    local name = known.queue .. '\n' .. known.id
    if not isGiven[name] and not string.find(gone, '\n\n' .. name .. '\n\n', 1, true) then others[#others + 1] = known end
  end
  return others
end

-- Holds a parent (1), or ends that (-1), which may let it go on.
local function hold(parent, by)
  local counts, job = countsOf(parent), find(parent)
  -- A parent that is gone has no counts.
  if by < 0 and counts.h == 0 or not job then return end
  family.mark(job, PARENT)
  counts.h, counts.changed, counts.isHeld = counts.h + by, true, true
  if by < 0 and isFree(counts) then releaseParent(parent) end
end

-- Gives parents to a job that exists. If it has another parent and does not share, the links of the given parents are removed instead.
local function adopt(job, given, mode)
  local id = job.id
  if mode:sub(1, 1) == '0' and #otherParents(id, given, mode) > 0 then
    for i = 1, #given do family.tellRemoval(given[i], id) end
    return
  end
  local marks, fields = family.read(id)
  local parents = family.parentsOf(marks, fields)
  local ended, byName = {}, {}
  for _, known in ipairs(parents) do byName[known.queue .. '\n' .. known.id] = known end
  for _, parent in ipairs(given) do
    local same = byName[parent.queue .. '\n' .. parent.id]
    if same then same.n = parent.n else parents[#parents + 1] = parent end
    ended[#ended + 1] = same or parent
  end
  family.setParents(id, marks, fields, parents)
  family.mark(job, CHILD)
  if job.finished == '' then return end
  local text = job.state == 'c' and (call('HGET', key('value'), id) or 'null') or call('HGET', key('reason'), id) or ''
  for _, parent in ipairs(ended) do family.tellEnd(parent, id, job.state, text) end
end

-- Adds a job that waits for its children.
local function enterParent(id, flags, text, extra)
  local priority, delay, rest = match(flags == '' and '0,0,0' or flags, '^(%d*),(%d*),%d(.*)$')
  local job = { id = id, priority = priority }
  noteSize(#text)
  if rest:sub(1, 1) == ';' then
    openGroups()
  elseif rest ~= '' and queue.keys == 0 then
    set('keys', 1)
  end
  family.await(job, delay)
  local tail = rest == '' and '' or rest:sub(1, 1) == ';' and '\0\0' .. rest:sub(2) or '\0' .. rest:sub(2)
  call('HSET', key('run'), id, format(ENTERED_RUN, 'P', '', delay, priority) .. digits(floor(now)) .. ',\0\0' .. tail)
  call('HSET', key('job'), id, text)
  call('HSET', key('extra'), id, extra)
  raiseForMarks(extra)
  parentsMarked[id] = true
  tell(2, 'M', id, nameIn(text))
end

-- Adds a job, or adopts one that exists. Returns whether it was added.
local function enterMember(id, flags, text, extra, mode)
  local known = find(id)
  if known then
    tell(1, 'U', id)
    local given = family.parentsOf(family.parse(extra ~= '' and extra or nil))
    if #given > 0 then adopt(known, given, mode) end
    return false
  elseif mode:sub(2, 2) == '1' then
    enterParent(id, flags, text, extra)
    family.noteLong(extra)
  elseif extra ~= '' then
    enterMarked(id, flags, text, extra)
    family.noteLong(extra)
  else
    call('HSET', key('run'), id, enter(id, flags, text))
    call('HSET', key('job'), id, text)
  end
  return true
end

-- Carries out steps, from the position `first` of the texts on. ids: ids of jobs that were counted up, by the number of the job in the
-- call. onEnter: called with the id of each job of an `e` step, and whether it was added.
local function takeSteps(texts, first, ids, onEnter)
  local waiting = {}
  for at = first, #texts, STEP_WIDTH do
    local kind, a, b, c, d, e = unpack(texts, at, at + STEP_WIDTH - 1)
    if kind == 'k' then
      link(a, b, c ~= '' and c or ids[e], d)
    elseif kind == 'n' then
      family.sendText(a, b)
    elseif kind == 'h' or kind == 'u' then
      hold(a, kind == 'h' and 1 or -1)
    else
      local added = enterMember(a, b, c, d, e)
      if onEnter then onEnter(a, added) end
      if added and e:sub(2, 2) == '1' then waiting[#waiting + 1] = a end
    end
  end
  for i = 1, #waiting do
    if isFree(countsOf(waiting[i])) then releaseParent(waiting[i]) end
  end
end

function arrivals.b(_, _, body)
  local texts = unpackTexts(body)
  takeSteps(texts, 1, {})
  return #texts / STEP_WIDTH
end

-- part: plain-deliver
-- Fast path for most deliveries within one slot, in a straight line as in `plain-settle` in settle.lua: ends of children that leave their
-- parent where it is, or let it wait in front of all jobs. It takes messages from the front of the outbox, and leaves the first one that
-- does not fit, with all that follow, to `deliver`: in the same call if no parent has moved, else in the next one.
-- The links have the form that `families` describes.
-- plainTaken: the messages that were taken. plainDone: nothing is left. moved: the parents that wait now. runs: their ids and run texts.
-- Gain: without it, an only child takes 1.2 × the processor time (node bench/fast-paths.mjs plain-deliver).
local plainTaken, plainDone, reply, told, events, offers, moved, runs = 0, false, nil, {}, 0, false, {}, {}
local AWAITS = '^$run{state..priority state=P timed=%d ord= delay=0 priority=0 *=%d*},[%d,]*%z[^%z]*%z[^%z]*$'
if ARGV[3] ~= '' then
  local stream, sender, most = ARGV[3] .. ':outbox:' .. ARGV[1], ARGV[2], tonumber(ARGV[4])
  local last, lastParent, links, counts, fits = nil, nil, nil, nil, true
  -- Messages that add jobs are large, so the first message is read alone.
  local messages = call('XRANGE', stream, '-', '+', 'COUNT', 1)
  if messages[1] and messages[1][2][2]:sub(1, 2) == 'c\0' then messages = call('XRANGE', stream, '-', '+', 'COUNT', math.min(most, 100)) end
  for i = 1, #messages do
    local number, body = messages[i][1]:sub(1, -3), messages[i][2][2]
    local parent, bond, child, state, text = match(body, '^c%z([^%z]*)%z([^%z]*)%z([^%z]*)%z([dfi])w0%z(.*)$')
    if not parent then break end
    if parent ~= lastParent then
      if counts then call('HSET', links, '#p', counts.p, '#d', counts.d, '#f', counts.f, '#i', counts.i) end
      lastParent, links = parent, base .. ':links:' .. parent
      local p, d, f, i, h = unpack(call('HMGET', links, '#p', '#d', '#f', '#i', '#h'))
      counts = p and { p = tonumber(p), d = tonumber(d), f = tonumber(f), i = tonumber(i), isHeld = tonumber(h or 0) > 0 }
    end
    local field = sender .. '\n' .. child
    local before, itsBond, itsNumber = match(counts and call('HGET', links, field) or '', '^(%a),([^,]*),(%d*)')
    fits = before == 'p' and counts.p > 0 and itsBond == bond and tonumber(itsNumber) < tonumber(number)
    if fits and counts.p == 1 and not counts.isHeld then
      local run = call('HGET', base .. ':run', parent)
      fits = run and match(run, AWAITS)
      if fits then
        moved[#moved + 1] = parent
        runs[#runs + 1] = parent
        runs[#runs + 1] = 'W' .. run:sub(2)
      end
    end
    if not fits then break end
    counts.p, counts[state] = counts.p - 1, counts[state] + 1
    call('HSET', links, field, state .. ',' .. bond .. ',' .. number .. '\0' .. text)
    plainTaken, last = i, number
  end
  if last then
    if counts then call('HSET', links, '#p', counts.p, '#d', counts.d, '#f', counts.f, '#i', counts.i) end
    call('XTRIM', stream, 'MINID', last .. '-1')
  end
  -- With fewer messages than the script has asked for, the outbox is empty.
  if plainTaken == #messages and plainTaken < math.min(most, 100) then
    call('UNLINK', stream)
    call('ZREM', ARGV[3] .. ':outbox', ARGV[1])
    plainDone = true
  end
end

-- The second part of the fast path of deliveries (see `plain-deliver`): lets the parents wait whose last child has ended, as
-- `releaseParent` in `arrivals` does.
if #moved > 0 then
  local places = {}
  for i = 1, #moved do
    front, places[2 * i] = front - 1, moved[i]
    places[2 * i - 1], told[3 * i - 2], told[3 * i - 1], told[3 * i] = format(DIGITS, front), 'W', moved[i], 'waiting-children'
  end
  call('ZREM', base .. ':waiting-children', unpack(moved))
  call('HSET', base .. ':run', unpack(runs))
  call('ZADD', base .. ':wait', unpack(places))
  if call('EXISTS', base .. ':waiting-children') == 0 then call('UNLINK', base .. ':kin') end
  events, offers, reply = #moved, true, { plainTaken, plainDone and 0 or 1 }
elseif plainDone then
  return { plainTaken, 0 }
end

-- name: add-family
-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks marking families entries schedules locks leave arrivals family-steps
-- Adds jobs with parents or children, as a whole or not at all. A repeated call (same caller and seq) returns the first reply and adds
-- nothing.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: caller, seq, name of the queue, refusals, number of jobs that this script adds, number of known jobs, head, then
--   for each job that this script adds   its number in the call, and the reply between it and the next one
--   for each known job of other queues   1 or 0 if it exists or not, and queue LF id
--   the steps in this queue, see `family-steps`. Their `e` steps add these jobs, in order. If the id is empty, the queue counts one up.
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

-- name: children
-- use: clock tools
-- Reads the links of a parent to its children, one page.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: job id, after ('': from the first link on, else = and the child that the page before ended with), limit, states (letters, see
--   `families`).
-- Returns the number of links of each state (pending, processed, failed, ignored), the child that the next page follows ('': the links have
-- ended), and for each link: child (queue LF id), state, text.

local LOOKED_AT_ONCE = 500
local links, after, limit = key('links:' .. ARGV[1]), ARGV[2], tonumber(ARGV[3])
local counts = call('HMGET', links, '#p', '#d', '#f', '#i')
for i = 1, 4 do counts[i] = tonumber(counts[i]) or 0 end
local from = after == '' and '-' or '(' .. after:sub(2)
local fields = call('ZRANGEBYLEX', key('kids:' .. ARGV[1]), from, '+', 'LIMIT', 0, LOOKED_AT_ONCE)
local texts, found, bytes, upTo = fetch(links, fields), {}, 0, ''
for i = 1, #fields do
  local state, text = match(texts[i] or '', '^(%a)[^%z]*%z(.*)$')
  if state and string.find(ARGV[4], state, 1, true) then
    if #found >= 3 * limit or (bytes + #text > REPLY_BYTES and #found > 0) then return { counts, upTo, found } end
    found[#found + 1], found[#found + 2], found[#found + 3] = fields[i], state, text
    bytes = bytes + #text
  end
  upTo = fields[i]
end
return { counts, #fields == LOOKED_AT_ONCE and upTo or '', found }

-- name: deliver
-- use: clock run-texts counters plain-deliver plain-save tools queue jobs groups lanes keys places enter marks marking families entries schedules locks leave arrivals family-steps
-- Applies messages of another queue, or of the same one, in order. If the outbox lies in the same slot, the script takes them from there.
-- KEYS: tag, the hash tag of the receiving queue.
-- ARGV: name of the receiving queue, name of the sending queue, tag of the sending queue if it lies in the same slot ('' otherwise), most
--   (a measure of the work), then, only without the tag, for each message its number and its text.
-- Returns how many messages were taken, 1 if the outbox has more (else 0), and the queues that got messages from this script.

local own, sender, from, most = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local READ_AT_ONCE = 20
family.name = own
local taken, work, more = plainTaken, plainTaken, 0

local function apply(number, body)
  work = work + (arrivals[body:sub(1, 1)](sender, number, body:sub(3)) or 1)
  taken = taken + 1
end

-- Takes messages from the outbox. One step applies and deletes them, so each is applied once.
local function takeOut()
  local stream, last = from .. ':outbox:' .. own, nil
  -- Messages that add jobs are large: after one of them, the next message is read alone.
  local wanted, before, size = 1, 0, 0
  repeat
    local messages = call('XRANGE', stream, last and '(' .. last or '-', '+', 'COUNT', wanted)
    size, before = #messages, work
    for i = 1, size do
      if work >= most then break end
      last = messages[i][1]
      apply(last:sub(1, -3), messages[i][2][2])
    end
    local isDone = size < wanted or work >= most
    wanted = work - before > size and 1 or READ_AT_ONCE
  until isDone
  if last then call('XTRIM', stream, 'MINID', last:sub(1, -2) .. '1') end
  if call('XLEN', stream) > 0 then
    more = 1
  else
    call('UNLINK', stream)
    call('ZREM', from .. ':outbox', own)
  end
end

-- Applies the messages that are given. Relayers begin with the oldest message, so a number up to the last one was applied before.
local function takeGiven()
  local last = tonumber(call('HGET', key('inbox'), sender) or 0)
  local applied = last
  for at = 5, #ARGV, 2 do
    if work >= most then break end
    local number = tonumber(ARGV[at])
    if number > last then
      applied = number
      apply(ARGV[at], ARGV[at + 1])
    else
      taken = taken + 1
    end
  end
  if applied > last then call('HSET', key('inbox'), sender, digits(applied)) end
end

if from ~= '' then takeOut() else takeGiven() end
writeCounts()
flushPlaces()
if queue.level > 5 and call('EXISTS', key('waiting-children')) == 0 then call('UNLINK', key('kin')) end
save()
return { taken, more, receivers() }

-- name: kin
-- use: clock tools
-- Reads which queues a queue has messages for, and which queues may have messages for it. Without waiting parents there are none of these.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: most, the queues of each kind to return.
-- Returns the receiving queues, and the queues that children of waiting parents are in.

if call('EXISTS', key('waiting-children')) == 0 then call('UNLINK', key('kin')) end
return { call('ZRANGE', key('outbox'), 0, ARGV[1] - 1), call('SRANDMEMBER', key('kin'), ARGV[1]) }

-- name: kinship
-- use: clock tools
-- Reads what an add of a family has to know of other queues.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: job ids.
-- Returns for each job 0 if it does not exist, else its marks and extras ('' for a plain job).

local texts, extras, found = fetch(key('run'), ARGV), fetch(key('extra'), ARGV), {}
for i = 1, #ARGV do found[i] = texts[i] and (extras[i] or '') or 0 end
return found

-- name: outgoing
-- use: clock tools
-- Reads the messages to another queue, the oldest first, after it has deleted those that were applied there.
-- KEYS: tag, the hash tag of the sending queue.
-- ARGV: name of the receiving queue, number of the last message that was applied ('': none), most, the messages to return.
-- Returns the numbers and texts of messages, one after the other.

local stream, most = key('outbox:' .. ARGV[1]), tonumber(ARGV[3])
local READ_AT_ONCE, BYTES = 5, 262144
if ARGV[2] ~= '' then
  call('XTRIM', stream, 'MINID', ARGV[2] .. '-1')
  if call('XLEN', stream) == 0 then
    call('UNLINK', stream)
    call('ZREM', key('outbox'), ARGV[1])
  end
end
local found, bytes, last = {}, 0, nil
repeat
  local messages = call('XRANGE', stream, last and '(' .. last or '-', '+', 'COUNT', READ_AT_ONCE)
  for i = 1, #messages do
    if #found >= 2 * most or bytes >= BYTES then break end
    last = messages[i][1]
    local text = messages[i][2][2]
    found[#found + 1], found[#found + 2] = last:sub(1, -3), text
    bytes = bytes + #text
  end
until #messages < READ_AT_ONCE or #found >= 2 * most or bytes >= BYTES
return found

-- name: overdue
-- use: clock tools
-- Finds pending links of parents that have waited for long, some of them per call, in turn. The second net asks the queues of these
-- children how they are (`remind`): the failover of one slot may have lost a message or its effect.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: parents to look at, links to look at, ms that a parent has waited at least.
-- Returns for each link: parent, child (queue LF id), bond. A link is left out while messages to the queue of its child wait.

local most, left, latest = tonumber(ARGV[1]), tonumber(ARGV[2]), digits(micros - ARGV[3] * 1000)
local from = call('GET', key('checked'))
local waiting = call('ZRANGEBYSCORE', key('waiting-children'), from and '(' .. from or '-inf', latest, 'WITHSCORES', 'LIMIT', 0, most)
if #waiting < 2 * most then call('UNLINK', key('checked')) else call('SET', key('checked'), waiting[#waiting]) end

local found, busy = {}, {}
local function isBusy(name)
  if busy[name] == nil then busy[name] = call('EXISTS', key('outbox:' .. name)) == 1 end
  return busy[name]
end

for i = 1, #waiting, 2 do
  local id = waiting[i]
  local kids = key('kids:' .. id)
  local count = call('ZCARD', kids)
  local share = math.min(count, math.max(1, floor(left / (#waiting - i + 1) * 2)))
  -- Each call looks at another part of many children.
  local first = count > share and micros % count or 0
  local fields = call('ZRANGE', kids, first, first + share - 1)
  local texts = fetch(key('links:' .. id), fields)
  left = left - #fields
  for j = 1, #fields do
    local bond = match(texts[j] or '', '^p,([^,]*),')
    if bond and not isBusy(match(fields[j], '^(.-)\n')) then
      found[#found + 1], found[#found + 2], found[#found + 3] = id, fields[j], bond
    end
  end
end
return found

-- name: remind
-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks marking families
-- Sends the ends of children to their parents once more. A child that is gone, or no longer has the parent, counts as removed.
-- KEYS: tag, the hash tag of the queue of the children.
-- ARGV: queue of the parents, then for each link: parent, child, bond.
-- Returns the queues that got messages.

openFamily()

local function remind(parent, id, bond)
  local job = find(id)
  local entry
  for _, known in ipairs(job and family.parentsOf(family.read(id)) or {}) do
    if family.isSame(known, { queue = ARGV[1], id = parent }) then entry = known end
  end
  if not entry then return family.tellRemoval({ queue = ARGV[1], id = parent, n = bond }, id) end
  -- Another bond: a later link is under way.
  if job.finished == '' or entry.n ~= bond then return end
  local text = job.state == 'c' and (call('HGET', key('value'), id) or 'null') or call('HGET', key('reason'), id) or ''
  family.tellEnd(entry, id, job.state, text)
end

for at = 2, #ARGV, 3 do remind(ARGV[at], ARGV[at + 1], ARGV[at + 2]) end
save()
return receivers() or {}

-- name: unlink
-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks marking families entries schedules locks leave arrivals
-- Parts parents from a child that is pending.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: name of the queue of the child, id of the child, then job ids of parents.
-- Returns a letter for each job: d done, m missing, s there is no such link. The queues that got messages follow, each after NUL.

local field, results = ARGV[1] .. '\n' .. ARGV[2], {}
for i = 3, #ARGV do
  local id = ARGV[i]
  local counts = countsOf(id)
  if not exists(id) then
    results[#results + 1] = 'm'
  elseif not match(call('HGET', counts.links, field) or '', '^p') then
    results[#results + 1] = 's'
  else
    deleteLink(counts, field, 'p')
    family.send(ARGV[1], 'x', ARGV[2], id, '0')
    if isFree(counts) then releaseParent(id) end
    results[#results + 1] = 'd'
  end
end
writeCounts()
flushPlaces()
save()
return concat(results) .. sentTo()
