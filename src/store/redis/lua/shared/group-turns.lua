-- Claims in turn, in a queue with groups (contract/groups.ts has the rule).
-- A claim reads the ring only once: a group that it serves gets a number above all others, so it goes behind those that were read.

-- Adds the line of groups with room, as one claim sees it.
local function addLine(line, count)
  -- fresh: groups of the ring as they were read. served: those that this claim has served, and that have room and jobs left.
  local fresh, served, freshAt, servedAt, visited, chunk, isRead = {}, {}, 1, 1, 0, 1, false
  -- taking: the groups that lose jobs.
  line.taking = {}

  local function readRing()
    local names = call('ZRANGE', key('ring'), #fresh, #fresh + count - 1)
    for _, one in ipairs(groups.inLine(names, 'r')) do fresh[#fresh + 1] = one end
    if #fresh > 0 then chunk = ceil(count / #fresh) end
    isRead = #names < count
  end

  -- Returns the member of the next waiting job of a group; nil if there is none.
  local function memberOf(one)
    local jobs = one.jobs or {}
    if one.isRead or one.taken and one.taken < #jobs then return jobs[(one.taken or 0) + 1] end
    local part = call('ZRANGE', key('members:' .. one.name), #jobs, #jobs + chunk)
    for i = 1, #part do jobs[#jobs + 1] = part[i] end
    one.jobs, one.taken, one.isRead = jobs, one.taken or 0, #part <= chunk
    return jobs[one.taken + 1]
  end

  -- Returns the first group with room and its next member; nil if there is none, or if the claim has passed too many (`line.isCut`).
  function line.first()
    while true do
      if not fresh[freshAt] and not isRead then readRing() end
      local one = fresh[freshAt] or served[servedAt]
      if not one then return nil end
      local member = groups.hasRoom(one) and memberOf(one)
      if member then return one, member end
      -- A group without waiting jobs goes out of line. A group without room goes aside.
      if groups.hasRoom(one) then one.number = nil end
      groups.touch(one)
      line.pass()
      visited = visited + 1
      if visited == VISITED then
        line.isCut = true
        return nil
      end
    end
  end

  function line.pass()
    if fresh[freshAt] then freshAt = freshAt + 1 else servedAt = servedAt + 1 end
  end

  -- Takes the next job of the first group, which gets the number of this turn.
  function line.take(one, number)
    line.pass()
    if one.taken == 0 then line.taking[#line.taking + 1] = one end
    one.taken, one.number = one.taken + 1, number
    groups.took(one)
    if not memberOf(one) then
      one.number = nil
    elseif groups.hasRoom(one) then
      served[#served + 1] = one
    end
  end
end

-- Returns the first jobs without a group, and how many of them are in `wait`; the others are in `prio`.
local function plainJobs(count)
  local ids = call('ZRANGE', key('wait'), 0, count - 1)
  local inWait = #ids
  if inWait < count then
    local members = call('ZRANGE', key('prio'), 0, count - inWait - 1)
    for i = 1, #members do ids[inWait + i] = members[i]:sub(17) end
  end
  return ids, inWait
end

-- Removes the jobs that a claim takes from their places.
local function removeTaken(line, members, used, inWait)
  if used > 0 and inWait > 0 then call('ZREMRANGEBYRANK', key('wait'), 0, math.min(used, inWait) - 1) end
  if used > inWait then call('ZREMRANGEBYRANK', key('prio'), 0, used - inWait - 1) end
  for _, one in ipairs(line.taking) do
    call('ZREMRANGEBYRANK', key('members:' .. one.name), 0, one.taken - 1)
    one.jobs, one.taken, one.isRead = nil, nil, nil
  end
  local ids = {}
  for i = 1, #members do ids[i] = members[i]:sub(17) end
  -- Which of both a job was in depends on its priority.
  many('ZREM', key('behind:wait'), ids)
  many('ZREM', key('behind:prio'), members)
end

-- Removes up to `count` jobs in turn, within the budget (nil: no budget). Returns their ids, their runs, and whether the budget or the
-- number of visited groups was the limit.
function groups.pop(count, budget, fits)
  groups.advance()
  local line, ids, owners, members, used = { isCut = false }, {}, {}, {}, 0
  addLine(line, count)
  local plain, inWait = plainJobs(count)
  while #ids < count do
    local one, member = line.first()
    local isPlain = plain[used + 1] and (not one or settings.plainTurn <= one.number)
    if line.isCut or not one and not isPlain then break end
    local id = isPlain and plain[used + 1] or member:sub(17)
    if budget and not fits(budget, id) then
      line.isCut = true
      break
    end
    ids[#ids + 1] = id
    if one then settings.turns, dirty = settings.turns + 1, true end
    if isPlain then
      used = used + 1
      if one then settings.plainTurn = settings.turns end
    else
      owners[#ids], members[#members + 1] = one, member
      line.take(one, settings.turns)
    end
  end
  removeTaken(line, members, used, inWait)
  local texts, size = fetch(key('run'), ids), 0
  for i = 1, #ids do
    -- Skip a place without a job, as `popWaiting` does.
    if texts[i] then
      size = size + 1
      ids[size], texts[size] = ids[i], texts[i]
    elseif owners[i] then
      groups.left(owners[i].name)
    end
  end
  for i = #ids, size + 1, -1 do ids[i], texts[i] = nil, nil end
  groups.flush()
  return ids, texts, line.isCut
end
