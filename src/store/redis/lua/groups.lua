-- Groups: turns, places and limits.

-- part: groups
-- Groups of jobs. Queues without groups must not pay for these functions.
-- The functions are made on first use, because Redis makes a script's functions anew in every run.
local groups
local function openGroups()
  if groups then return groups end
  groups = {}
  -- Groups of jobs: contract/groups.ts has the rule of turns. A group in line is in the ring, or aside if it has no room.
  --   groups           by key: active,number,at and, if it has any of them,
  -- ,maxActive,rateMax,rateMs,paused,blockedUntil,windowEnds,windowUsed
  --     number         its number in line; empty if it is not in line
  --     at             r in the ring, a aside, s aside until its block or window ends; empty if it is not in line
  --     maxActive, rateMax, rateMs   limits of its own; empty if it has none. paused: 1 or 0
  --   groupNames       the keys of all stored groups, in the order of their bytes
  --   members:<key>    its waiting jobs by priority, then by place, as in `prio`. They are in `behind:` too, for lists: see `lanes` in
  -- keys.lua
  --   ring             groups by number, then by the bytes of the key. Some may have no room under limits that were lowered since
  --   aside            groups by the tick at which they were put there
  --   resting          those of them that are aside until a time, by this time in ms
  --   idle             groups that are stored only because a block or a window has an end ahead, by this end in ms
  -- Settings (see `counters` in queues.lua) of the queue: turns, the number of the last turn · plainTurn, the number of the jobs without a
  -- group · groupActive, groupMax, groupMs, the limits of all groups, 0 for none, the first two one more than the limit · recheck, the tick
  -- up to which groups aside have to be looked at again, because these limits have changed.
  -- The first job of a group, or setting, raises the level of the queue to 5: processes of versions that do not know groups must not touch
  -- the queue then.
  local GROUP, LIMITS = '^(%d*),(%d*),(%a?)(.*)$', '^,(%d*),(%d*),(%d*),(%d*),(%d*),(%d*),(%d*)$'
  -- MOVED_AT_ONCE: the groups that one script looks at again. VISITED: the groups without room or jobs that one claim passes.
  local MOVED_AT_ONCE, VISITED = 200, 400

  if queue.level < 5 then
    settings = settings or { $each{settings # = 0} }
    set('level', 5)
  end

  -- `get` reads the state of a group; `touch` lets `flush` put the group where it belongs, and the end of the script write it.
  local known = {}
  groups.touched, groups.changed = {}, {}

  local function read(name, text)
    local active, number, at, more = match(text or '', GROUP)
    local one = {
      name = name, stored = text, active = tonumber(active) or 0, number = tonumber(number or ''), at = at or '', maxActive = '',
      rateMax = '', rateMs = '', paused = '0', blockedUntil = 0, windowEnds = 0, windowUsed = 0,
    }
    one.placed = one.number
    local maxActive, rateMax, rateMs, paused, blockedUntil, windowEnds, windowUsed = match(more or '', LIMITS)
    if not windowUsed then return one end
    one.maxActive, one.rateMax, one.rateMs, one.paused = maxActive, rateMax, rateMs, paused
    one.blockedUntil, one.windowEnds, one.windowUsed = tonumber(blockedUntil) or 0, tonumber(windowEnds) or 0, tonumber(windowUsed) or 0
    return one
  end

  function groups.get(name)
    known[name] = known[name] or read(name, call('HGET', key('groups'), name))
    return known[name]
  end

  -- Returns the states of several groups.
  function groups.all(names)
    local unknown, found = {}, {}
    for i = 1, #names do
      if not known[names[i]] then unknown[#unknown + 1] = names[i] end
    end
    local texts = fetch(key('groups'), unknown)
    for i = 1, #unknown do known[unknown[i]] = read(unknown[i], texts[i]) end
    for i = 1, #names do found[i] = known[names[i]] end
    return found
  end

  -- Returns the states of groups that were found in the ring or aside (`at`). If a state is lost (a user deleted keys, or Redis evicted
  -- them), the group is in line again, with the number of the last turn.
  function groups.inLine(names, at)
    local list = groups.all(names)
    for i = 1, #list do
      local one = list[i]
      if not one.number then one.number, one.at = settings.turns, at end
    end
    return list
  end

  function groups.touch(one)
    if one.touched then return end
    one.touched = true
    groups.touched[#groups.touched + 1] = one
    if not one.changed then groups.changed[#groups.changed + 1] = one end
    one.changed = true
  end

  -- Returns the rate that applies to a group: max and ms; nil without one.
  local function rateOf(one)
    if one.rateMax ~= '' then return tonumber(one.rateMax), tonumber(one.rateMs) end
    if settings.groupMax > 0 then return settings.groupMax - 1, settings.groupMs end
  end

  function groups.hasSettings(one) return one.paused == '1' or one.maxActive ~= '' or one.rateMax ~= '' end

  -- Returns whether a further job of the group may be active.
  function groups.hasPlace(one)
    local most = tonumber(one.maxActive) or settings.groupActive > 0 and settings.groupActive - 1 or math.huge
    return one.paused ~= '1' and one.active < most
  end

  -- Returns the time in ms at which the block or the used window of a group ends. The group rests if it is ahead.
  function groups.restEnd(one)
    if one.windowEnds <= now then return one.blockedUntil end
    local max = rateOf(one)
    local full = max and one.windowUsed >= max
    return math.max(one.blockedUntil, full and one.windowEnds or 0)
  end

  function groups.hasRoom(one) return groups.hasPlace(one) and groups.restEnd(one) <= now end

  -- Counts a claimed job of a group.
  function groups.took(one)
    local max, ms = rateOf(one)
    if max and one.windowEnds <= now then one.windowEnds, one.windowUsed = ceil(now + ms), 0 end
    if one.windowEnds > now then one.windowUsed = one.windowUsed + 1 end
    one.active = one.active + 1
    groups.touch(one)
  end

  -- Frees the place of a job that has left active.
  function groups.left(name)
    local one = groups.get(name)
    one.active = math.max(0, one.active - 1)
    groups.touch(one)
  end
  -- Groups (see `groups`): `flush` puts the groups that were touched where they belong, and `write` writes their states. A group
  -- that has nothing is not stored.
  -- The pending writes by key of the sorted set.
  local added, removed = { ring = {}, aside = {}, resting = {} }, { ring = {}, aside = {}, resting = {} }

  local function put(place, score, one)
    local list = added[place]
    list[#list + 1], list[#list + 2] = digits(score), one.name
  end

  local function pull(place, one) table.insert(removed[place], one.name) end

  local function where(one)
    if not one.number then return '' end
    if not groups.hasPlace(one) then return 'a' end
    return groups.restEnd(one) > now and 's' or 'r'
  end

  -- Workers are woken for a group that is in the ring now, unless this script claims until the group has no room again.
  local function wake(one, to)
    if to == 'r' then
      turned = turned or {}
      turned['\0' .. one.name] = true
    elseif turned then
      turned['\0' .. one.name] = nil
    end
  end

  local function place(one)
    local before, to = one.at, where(one)
    local wasAside, isAside = before == 'a' or before == 's', to == 'a' or to == 's'
    if to == 'r' and (before ~= 'r' or one.placed ~= one.number) then put('ring', one.number, one) end
    if before == 'r' and to ~= 'r' then pull('ring', one) end
    if isAside and (one.isAgain or not wasAside) then put('aside', ticks(1), one) end
    if wasAside and not isAside then pull('aside', one) end
    if to == 's' then put('resting', groups.restEnd(one), one) end
    if before == 's' and to ~= 's' then pull('resting', one) end
    if to ~= before or one.comers then wake(one, to) end
    one.at, one.placed, one.isAgain = to, one.number, nil
  end

  function groups.flush()
    local list = groups.touched
    if #list == 0 then return end
    groups.touched = {}
    for i = 1, #list do
      local one = list[i]
      place(one)
      if one.comers then many('ZADD', key('members:' .. one.name), one.comers) end
      one.touched, one.comers = nil, nil
    end
    groups.flushLists()
    for name, members in pairs(removed) do
      many('ZREM', key(name), members)
      removed[name] = {}
    end
    for name, members in pairs(added) do
      many('ZADD', key(name), members)
      added[name] = {}
    end
  end

  local function textOf(one, hasSettings)
    local text = one.active .. ',' .. (one.number or '') .. ',' .. one.at
    if not hasSettings and one.blockedUntil <= now and one.windowEnds <= now then return text end
    return concat({
      text, one.maxActive, one.rateMax, one.rateMs, one.paused, digits(one.blockedUntil), digits(one.windowEnds), one.windowUsed,
    }, ',')
  end

  function groups.write()
    groups.flush()
    local texts, idle, new, gone = {}, {}, {}, {}
    for _, one in ipairs(groups.changed) do
      local hasSettings, opensAt = groups.hasSettings(one), math.max(one.blockedUntil, one.windowEnds)
      local isIdle = one.active == 0 and not one.number and not hasSettings
      if not isIdle or opensAt > now then
        texts[#texts + 1], texts[#texts + 2] = one.name, textOf(one, hasSettings)
        if not one.stored then new[#new + 1], new[#new + 2] = '0', one.name end
        if isIdle then idle[#idle + 1], idle[#idle + 2] = digits(opensAt), one.name end
      elseif one.stored then
        gone[#gone + 1] = one.name
      end
    end
    many('HSET', key('groups'), texts)
    many('ZADD', key('groupNames'), new)
    many('ZADD', key('idle'), idle)
    many('HDEL', key('groups'), gone)
    many('ZREM', key('groupNames'), gone)
  end

  atEnd = groups.write
  -- Groups (see `groups`): the ways of jobs into and out of the list of their group, and what time and changed limits do to groups,
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
  return groups
end

-- name: groups
-- use: clock tools counters queue groups
-- Reads groups.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: by what, and its arguments: k, keys of groups · p, the most groups to look at, `=` and the key after which to begin ('': at the
--   first).
-- Returns a list of three:
--   rules    groupActive, groupMax and groupMs: see `groups`
--   next     `=` and the key to continue after; '' at the end
--   groups   for each group a list: key, active, paused, maxActive, rateMax, rateMs (each '' for none), limitedMs, waiting. A page leaves
--            out groups without waiting and active jobs and settings.

openGroups()
local names, next = {}, ''
if ARGV[1] == 'k' then
  for i = 2, #ARGV do names[i - 1] = ARGV[i] end
else
  names = call('ZRANGEBYLEX', key('groupNames'), ARGV[3] == '' and '-' or '(' .. ARGV[3]:sub(2), '+', 'LIMIT', 0, ARGV[2])
  if #names == tonumber(ARGV[2]) then next = '=' .. names[#names] end
end
local found = {}
for i, one in ipairs(groups.all(names)) do
  local waiting = call('ZCARD', key('members:' .. one.name))
  local isShown = waiting + one.active > 0 or groups.hasSettings(one)
  if isShown or ARGV[1] == 'k' then
    found[#found + 1] = {
      one.name, one.active, one.paused, one.maxActive, one.rateMax, one.rateMs, math.max(0, ceil(groups.restEnd(one) - now)), waiting,
    }
  end
end
return { { settings.groupActive, settings.groupMax, settings.groupMs }, next, found }

-- name: forget-groups
-- use: clock tools counters queue groups
-- Forgets the settings, blocks, windows and turns of groups, BITE groups per call. The limits of all groups stay while a session is open.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: `=` and the key after which to begin; '': at the first.
-- Returns `=` and the key to continue after; '' at the end.

if queue.level < 5 then return '' end
local BITE = 100
openGroups()
for _, name in ipairs({ 'turns', 'plainTurn' }) do settings[name] = 0 end
if call('EXISTS', key('sessions')) == 0 then
  for _, name in ipairs({ 'groupActive', 'groupMax', 'groupMs' }) do settings[name] = 0 end
end
local names = call('ZRANGEBYLEX', key('groupNames'), ARGV[1] == '' and '-' or '(' .. ARGV[1]:sub(2), '+', 'LIMIT', 0, BITE)
for _, one in ipairs(groups.all(names)) do
  one.paused, one.maxActive, one.rateMax, one.rateMs, one.blockedUntil, one.windowEnds = '0', '', '', '', 0, 0
  if one.number then one.number = call('EXISTS', key('members:' .. one.name)) == 1 and 0 or nil end
  groups.touch(one)
end
dirty = true
save()
return #names == BITE and '=' .. names[BITE] or ''
