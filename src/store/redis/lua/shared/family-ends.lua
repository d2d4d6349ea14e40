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

-- Notifies a parent of the end of a child. state: c completed, f failed, r removed, o waits again. number: nil, or that of an earlier message
-- which this one stands for. Returns false if the failure has no instruction.
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

-- Cuts the parents out of long extras, in texts of about LONG_EXTRA bytes. A parent ends where `},{"` and a letter follow: within a JSON string,
-- the quote would end the string, and no letter follows then.
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
