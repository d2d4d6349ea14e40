-- Carries out the steps that add jobs of a family. Each step has six texts:
--   k   parent, queue of the child, child, bond, number of the job in the call   links a job of this queue to a child
--   e   id, flags, text, extra, mode (see add.lua for the first ones)            adds a job, or gives its parents to a job that exists
--   n   queue, message (b and its list of steps)                                 sends steps to another queue, or to the own one
--   h   parent                                                                   holds a parent while steps that link it are under way
--   u   parent                                                                   ends that
-- mode: 1 or 0 if the job shares; 1 or 0 if it waits for children; then the parents that are known to be gone (queue LF id), with LF LF between.
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

-- Carries out steps, from the position `first` of the texts on. ids: ids of jobs that were counted up, by the number of the job in the call.
-- onEnter: called with the id of each job of an `e` step, and whether it was added.
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
