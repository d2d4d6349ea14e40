-- Groups (see group-states.lua): the ways of jobs into and out of the list of their group, and what time and changed limits do to groups,
-- at most MOVED_AT_ONCE groups for each of them.
local behind = { wait = {}, prio = {} }

-- Makes a job wait in its group. Returns its place as 16 digits, for `ord` of the job.
function groups.lineUp(job, place)
  local ord, one = format('%016.0f', place + ORD_BIAS), groups.get(job.group)
  local comers, list = one.comers or {}, behind[job.priority == '0' and 'wait' or 'prio']
  comers[#comers + 1], comers[#comers + 2] = job.priority, ord .. job.id
  if job.priority == '0' then
    list[#list + 1], list[#list + 2] = digits(place), job.id
  else
    list[#list + 1], list[#list + 2] = job.priority, ord .. job.id
  end
  one.number, one.comers = one.number or settings.turns, comers
  groups.touch(one)
  return ord
end

function groups.flushLists()
  for place, list in pairs(behind) do
    many('ZADD', key('behind:' .. place), list)
    behind[place] = {}
  end
end

-- Takes a waiting job out of the list of its group. The group stays in line.
function groups.leaveLine(job)
  groups.flush()
  call('ZREM', key('members:' .. job.group), job.ord .. job.id)
  if job.priority == '0' then
    call('ZREM', key('behind:wait'), job.id)
  else
    call('ZREM', key('behind:prio'), job.ord .. job.id)
  end
end

-- Takes a waiting job that a claim names. Returns false if its group has no place.
function groups.takeNamed(job)
  local one = groups.get(job.group)
  if not groups.hasPlace(one) then return false end
  groups.leaveLine(job)
  groups.took(one)
  return true
end

function groups.advance()
  local names = call('ZRANGEBYSCORE', key('resting'), '-inf', now, 'LIMIT', 0, MOVED_AT_ONCE)
  local list, rested = groups.inLine(names, 's'), #names
  if settings.recheck > 0 then
    local aside = call('ZRANGEBYSCORE', key('aside'), '-inf', digits(settings.recheck), 'LIMIT', 0, MOVED_AT_ONCE)
    if #aside < MOVED_AT_ONCE then settings.recheck, dirty = 0, true end
    for i, one in ipairs(groups.inLine(aside, 'a')) do list[rested + i], one.isAgain = one, true end
  end
  for i = 1, #list do groups.touch(list[i]) end
  groups.flush()
end

-- Looks at all groups aside again, at once if they are few: the limits of all groups have changed.
function groups.recheck()
  settings.recheck = ticks(1)
  groups.advance()
end

-- Returns the time in ms at which the first rest of a group with waiting jobs ends; nil if there is none. If the first rests are all of
-- groups without jobs, it returns the end of the last of them, and a later claim sees the others.
function groups.nextRest()
  local found = call('ZRANGEBYSCORE', key('resting'), '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, MOVED_AT_ONCE)
  for i = 1, #found, 2 do
    if call('EXISTS', key('members:' .. found[i])) == 1 then return tonumber(found[i + 1]) end
  end
  return #found == 2 * MOVED_AT_ONCE and tonumber(found[#found]) or nil
end

-- Forgets groups whose block or window has ended, and which have nothing else.
function groups.sweep(limit)
  local names = call('ZRANGEBYSCORE', key('idle'), '-inf', now, 'LIMIT', 0, limit)
  for _, one in ipairs(groups.all(names)) do groups.touch(one) end
  many('ZREM', key('idle'), names)
end
