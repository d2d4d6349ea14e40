-- Settling and claiming jobs.

-- part: plain-settle
-- Fast path for most settles and claims: a worker completes jobs of one retention, if any, and claims the next jobs, in a queue without due
-- jobs, lock keys, limits, rate, cap or pause. Groups may be in line if none of them rests or has settings of its own. The first
-- line of `settle` lists the parts of the fast path. They share these variables and make no function: Redis makes a script's functions
-- anew in every run. Those of `settle`, with their garbage, were 45 of the 130 µs of a lone settle; three functions here were 1.5 of 29 µs.
-- The fast path reads everything before it writes anything. If a call does not fit, it leaves before it has changed anything, and
-- `settle` carries the call out. Both paths must leave the same data and return the same reply.
-- Tables begin with room for one job, because a table that grows is reallocated.
-- fits: the call fits the fast path so far. ids, claims: the jobs to claim, and their number. size: the number of jobs to complete. texts:
-- the run texts of the jobs to complete, then of those to claim. waiting: further jobs wait. moment: now as digits. place: the first tick.
-- grouped: groups may be in line or lose active jobs: see `plain-settle`. leaving: by job to complete, the key of its group.
-- children: by job to complete, whether it is marked and has no group; nil if none is. kept: how many of the completed jobs stay. gone: the
-- jobs to remove: the completed ones, or older ones that retention trims. goneMarked: those of them that are marked.
-- Gain: without it, a job takes 1.18 × the processor time at concurrency 10; without its parts for groups 1.35 ×, for children 1.24 ×
-- (node bench/fast-paths.mjs plain-settle).
local reply, told, events, offers = nil, { nil, nil, nil, nil, nil, nil }, 0, false
local fits, session, seq, lane, most, size = false, ARGV[5], ARGV[6], ARGV[7], tonumber(ARGV[8]), tonumber(ARGV[11])
local due, ids, claims, waiting, settled, texts, runs, owner, moment, place
local grouped, leaving, children = false, nil, nil
local kept, gone, goneMarked = size, nil, nil

if ARGV[4] == '1' and ARGV[10] == '' and (ARGV[1] == '' and ARGV[11] == '0' or session == ARGV[1] and seq == ARGV[2]
  and lane == ARGV[3] and ARGV[12] == 'c' and ARGV[13] == ARGV[11] and ARGV[15] == ARGV[1] .. ':') then
  repeat
    -- More than 1000 jobs would not fit on Lua's stack.
    if size > 1000 or most > 1000 or most == 0 then break end
    if paused ~= 0 or keys ~= 0 or cap ~= 0 or limitedUntil > now or windowEnds > now then break end
    -- With the first completed job of a minute, metrics write the minute before.
    if level > 3 and (rateMax > 0 or points > 0 and size > 0 and completedMinute ~= floor(now / 60000)) then break end
    if level > 4 then
      -- Most queues have none of these keys. The reply has to say that a schedule is owing, or that messages wait.
      local resting, owing, outbox = base .. ':resting', base .. ':owing', base .. ':outbox'
      local found = call('EXISTS', base .. ':groups', base .. ':ring', base .. ':aside', resting, owing, outbox)
      grouped = found > 0
      if grouped and (call('EXISTS', resting, owing, outbox) > 0 or recheck > 0 or groupMax > 0 or size > 200 or most > 200) then break end
    elseif level > 2 and call('EXISTS', base .. ':owing') == 1 then
      break
    end
    due = delays ~= 0 and tonumber(call('ZRANGE', base .. ':delayed', 0, 0, 'WITHSCORES')[2])
    if due and due <= micros then break end

    local expires, ended, suspected, last =
      unpack(call('HMGET', base .. ':s:' .. session, 'expires', 'ended', 'suspected', 'seq' .. lane))
    if not expires or ended or suspected or tonumber(expires) <= now or tonumber(seq) <= tonumber(last or 0) then break end

    ids = call('ZRANGE', base .. ':wait', 0, most)
    claims = #ids
    waiting = claims > most
    if waiting then
      ids[claims], claims = nil, most
    elseif call('EXISTS', base .. ':prio') == 1 then
      break
    end
    -- Jobs that may exceed a reply have to be measured. One job needs no byte budget: a claim returns at least one.
    if (grouped and most or claims) > 1 and (grouped and most or claims) * largest > REPLY_BYTES then break end

    settled, texts, runs = { nil }, { nil, nil }, { nil, nil, nil, nil }
    for i = 1, size do settled[i], texts[i] = ARGV[13 + 3 * i], ARGV[13 + 3 * i] end
    for i = 1, grouped and 0 or claims do texts[size + i] = ids[i] end
    if #texts > 0 then texts = call('HMGET', base .. ':run', unpack(texts)) end
    owner, moment, place = session .. ':', format(DIGITS, floor(now)), tick < micros and micros or tick + 1
    fits = true
  until true
end

-- A part of the fast path (see `plain-settle`), for completed jobs that are not all kept for ever: the jobs to remove, as in retention.lua.
-- Trimmed jobs fit if they are plain or of a group, and if the completed jobs themselves stay.
if fits and size > 0 and ARGV[14] == '0' then
  kept, gone = 0, settled
elseif fits and size > 0 and ARGV[14] ~= '' then
  fits = false
  repeat
    local count, age = match(ARGV[14], '^(%d*),(%d*)$')
    if not count or age == '0' then break end
    local most, excess = TRIMMED_AT_ONCE + size, 0
    if count ~= '' then excess = math.max(0, math.min(call('ZCARD', base .. ':completed') + size - count, most)) end
    gone = excess > 0 and call('ZRANGE', base .. ':completed', 0, excess - 1) or {}
    if #gone < excess then break end
    if age ~= '' then
      local old = call('ZRANGEBYSCORE', base .. ':completed', '-inf', micros - age * 1000, 'LIMIT', excess, most)
      for i = 1, #old do gone[excess + i] = old[i] end
    end
    fits = true
    if #gone == 0 then
      gone = nil
    elseif level > 1 then
      local found = call('HMGET', base .. ':extra', unpack(gone))
      goneMarked = {}
      for i = 1, #gone do
        if found[i] then
          goneMarked[#goneMarked + 1] = gone[i]
          fits = fits and found[i]:sub(1, 2) == '1,'
        end
      end
    end
  until true
end

-- The second part of the fast path (see `plain-settle`): the new run texts, scores, values and events of the jobs to complete, the range
-- of their fences, and the groups that they leave.
local scores, values, firstFence, nextFence = { nil, nil }, nil, nil, nil
if fits and size > 0 then
  local finished, mark, seen = format(FINISHED_RUN, 'c', moment), '\0' .. owner, size > 1 and {}
  local lastHead, left, isMarked = nil, nil, false
  leaving = grouped and {}
  for i = 1, size do
    local id, fence, value, text = settled[i], ARGV[14 + 3 * i], ARGV[15 + 3 * i], texts[i]
    local markAt = text and text:find(mark, 1, true)
    local fenceAt = markAt and markAt + #mark
    fits = markAt and fence ~= '' and text:find(fence, fenceAt, true) == fenceAt and text:byte(fenceAt + #fence) == 0
      and not (seen and seen[id])
    if not fits then break end
    local head = text:sub(1, markAt)
    if head ~= lastHead then
      isMarked = level > 4 and head:byte() == 65
      local ends, made, rest = match(isMarked and 'a' .. head:sub(2) or head, HELD)
      fits = ends == ''
      if not fits then break end
      lastHead, left = head, (isMarked and 'C' .. finished:sub(2) or finished) .. (made == '0' and '1' or format(DIGITS, made + 1)) .. rest .. owner
    end
    local tail = text:sub(fenceAt + #fence)
    if grouped then leaving[i] = false end
    if isMarked then
      -- Without a group, the job may be a child.
      local at = tail:find('\0', 2, true)
      if at then
        fits = grouped and tail:byte(at + 1) == 0
        if not fits then break end
        leaving[i] = tail:sub(at + 2)
        if kept == 0 then
          goneMarked = goneMarked or {}
          goneMarked[#goneMarked + 1] = id
        end
      else
        fits = kept > 0 and ARGV[16 + 3 * size] ~= nil
        if not fits then break end
        children = children or {}
        children[i] = true
      end
    end
    if seen then seen[id] = true end
    local number = tonumber(fence)
    if i == 1 then firstFence, nextFence = number, number end
    nextFence = nextFence == number and number + 1
    if kept > 0 then
      runs[2 * i - 1], runs[2 * i] = id, left .. fence .. tail
      scores[2 * i - 1], scores[2 * i] = format(DIGITS, place + i - 1), id
      if value ~= 'null' then
        values = values or {}
        values[#values + 1], values[#values + 2] = id, value
      end
    elseif #value > EVENT_VALUE_BYTES then
      -- The event of a removed job holds its result, and a large one lies beside the event.
      fits = false
      break
    end
    told[3 * i - 2], told[3 * i - 1], told[3 * i] = 'C', id, #value > EVENT_VALUE_BYTES and LARGE_VALUE or value
  end
end

-- A part of the fast path (see `plain-settle`), for completed jobs that are marked as children alone: it reads the links to them in queues
-- that lie in the same slot. `plain-settle` writes the ends. A link that is not as the child was added, and the last pending link of a
-- parent, which may move the parent, do not fit: their ends become messages, as in families.lua.
-- ends: by parent, its queue, id, the key of its links (nil if another slot may have it), and lists of children, bonds and values.
-- ARGV behind the outcomes: the name of this queue, and for each queue in the same slot that it has sent messages to, its name and its tag.
local ends
if fits and children then
  local extras, isNear = call('HMGET', base .. ':extra', unpack(settled)), {}
  local byName, lastExtra, parents, targets = {}, nil, nil, nil
  ends = {}
  for at = 17 + 3 * size, #ARGV, 2 do
    -- The level is the last counter. A queue of a newer level, or one that was forgotten, is left to `deliver` in families.lua.
    local itsLevel = ARGV[at + 1] == base and level
    if not itsLevel then
      local text = call('GETRANGE', ARGV[at + 1] .. ':meta', 8 * #PACKED - 16, 8 * #PACKED - 9)
      itsLevel = #text == 8 and struct.unpack('<d', text)
    end
    isNear[ARGV[at]] = itsLevel == HIGHEST and ARGV[at + 1]
  end
  for i = 1, size do
    local extra = children[i] and extras[i]
    if children[i] and extra ~= lastExtra then
      local isRead, fields = pcall(cjson.decode, extra and #extra <= LONG_EXTRA and extra:sub(1, 2) == '2,' and extra:sub(3))
      parents, targets, lastExtra = isRead and fields.p, {}, extra
      fits = parents ~= nil and parents ~= false
      if not fits then break end
      for n = 1, #parents do
        local parent = parents[n]
        local name = parent.queue .. '\n' .. parent.id
        local known = byName[name]
        if not known then
          local tag = isNear[parent.queue]
          known = { queue = parent.queue, id = parent.id, links = tag and tag .. ':links:' .. parent.id, ids = {}, bonds = {}, values = {} }
          byName[name], ends[#ends + 1] = known, known
        end
        targets[n] = known
      end
    end
    for n = 1, children[i] and #targets or 0 do
      local ids, known = targets[n].ids, targets[n]
      local last = #ids + 1
      ids[last], known.bonds[last], known.values[last] = settled[i], parents[n].n, ARGV[15 + 3 * i]
    end
  end
end

-- A part of the fast path (see `plain-settle`), in a queue with groups: reads the first groups of the ring and those that the completed
-- jobs leave (contract/groups.ts has the rule, groups.lua the keys). `plain-settle` chooses the jobs to claim, in turn. They fit if all
-- groups that they meet have no settings, block or window of their own, and if the first groups of the ring have room and jobs.
-- names: the keys of the groups that were read; all other lists go by their index. slots: the index by key. actives, numbers (false: not in
-- line), ats: their states. stated: numbers as stored. members: the first waiting jobs. taken: how many of them are claimed. owners: by
-- claimed job, the index of its group, or false. turn, plainAt: the new turns and plainTurn. used: how many jobs without a group are
-- claimed. asides: ticks and keys of the groups that go aside. maxActive: the limit of all groups. extras: those of the jobs to claim.
-- fresh: the groups with room in the order of their numbers.
local names, slots, actives, numbers, stated, ats, members, taken, owners, asides, extras, fresh
local turn, plainAt, used, maxActive = turns, plainTurn, 0, math.huge
if fits and grouped then
  fits = false
  repeat
    if groupActive > 0 then maxActive = groupActive - 1 end
    -- Numbers among the arguments of a command would cost Redis a quarter of a microsecond each, so they are texts.
    names, slots = call('ZRANGE', base .. ':ring', '0', format(DIGITS, most - 1)), {}
    local inRing, isFit = #names, true
    for i = 1, inRing do slots[names[i]] = i end
    for i = 1, size do
      local name = leaving[i]
      if name and not slots[name] then
        names[#names + 1] = name
        slots[name] = #names
      end
    end
    actives, numbers, stated, ats, members, taken = {}, {}, {}, {}, {}, {}
    local states = #names > 0 and call('HMGET', base .. ':groups', unpack(names))
    for i = 1, #names do
      local active, number, at = match(states[i] or '', '^(%d+),(%d*),([ra]?)$')
      isFit = active and (at == '') == (number == '') and (at == 'r' or i > inRing)
      if not isFit then break end
      actives[i], numbers[i], ats[i] = tonumber(active), tonumber(number) or false, at
      stated[i] = numbers[i]
    end
    if not isFit then break end

    for i = 1, size do
      local slot = leaving[i] and slots[leaving[i]]
      if slot then
        actives[slot], taken[slot] = math.max(0, actives[slot] - 1), 0
        -- Limits were lowered: the group has to go aside.
        if ats[slot] == 'r' and actives[slot] >= maxActive then isFit = false end
      end
    end
    -- The groups of the ring are sorted; those that come back from aside mostly have the highest numbers. Equal numbers are ordered by key,
    -- as Redis does it.
    local steps = 0
    fresh = {}
    for i = 1, inRing do fresh[i] = i end
    for slot = inRing + 1, #names do
      if ats[slot] == 'a' and actives[slot] < maxActive then
        local at, number = #fresh, numbers[slot]
        while at > 0 and numbers[fresh[at]] > number do
          fresh[at + 1] = fresh[at]
          at, steps = at - 1, steps + 1
        end
        if at > 0 and numbers[fresh[at]] == number or steps > 1000 then isFit = false end
        fresh[at + 1] = slot
      end
    end
    fits = isFit
  until true
end

-- A part of the fast path (see `plain-settle`), in a queue with groups: chooses the jobs to claim, in turn, of the groups that
-- `plain-settle` has read. order: the groups that got a turn.
local order
if fits and grouped then
  fits = false
  repeat
    -- served: groups that got a turn in this claim, and that have room and jobs left.
    local plain, served, freshAt, servedAt, isFit = ids, {}, 1, 1, true
    local chunk = #fresh > 0 and ceil(most / #fresh) or 0
    local lastRead = format(DIGITS, chunk)
    ids, owners, claims, order = {}, {}, 0, {}
    while claims < most do
      local slot = fresh[freshAt] or served[servedAt]
      local jobs = slot and members[slot]
      if slot and not jobs then
        jobs = call('ZRANGE', base .. ':members:' .. names[slot], '0', lastRead)
        isFit = actives[slot] < maxActive and jobs[1]
        if not isFit then break end
        members[slot], taken[slot] = jobs, 0
      end
      local isPlain = plain[used + 1] and (not slot or plainAt <= numbers[slot])
      if not slot and not isPlain then break end
      if slot then turn = turn + 1 end
      claims = claims + 1
      if isPlain then
        used = used + 1
        ids[claims], owners[claims] = plain[used], false
        if slot then plainAt = turn end
      else
        if fresh[freshAt] then freshAt = freshAt + 1 else servedAt = servedAt + 1 end
        local count = taken[slot] + 1
        if count == 1 then order[#order + 1] = slot end
        ids[claims], owners[claims] = jobs[count]:sub(17), slot
        taken[slot], actives[slot], numbers[slot] = count, actives[slot] + 1, turn
        if not jobs[count + 1] and #jobs % (chunk + 1) == 0 then
          local part = call('ZRANGE', base .. ':members:' .. names[slot], #jobs, #jobs + chunk)
          for i = 1, #part do jobs[count + i] = part[i] end
        end
        if not jobs[count + 1] then
          numbers[slot] = false
        elseif actives[slot] < maxActive then
          served[#served + 1] = slot
        end
      end
    end
    fits = isFit
  until true
end

-- A part of the fast path (see `plain-settle`), in a queue with groups: the groups that go aside after `plain-settle`, and the texts of the
-- jobs to claim. A job of a group fits if its group is all that it is marked for.
if fits and grouped then
  asides = {}
  for i = 1, #order do
    local slot = order[i]
    if numbers[slot] then waiting = true end
    if numbers[slot] and actives[slot] >= maxActive then
      asides[#asides + 1] = format(DIGITS, place + kept + #asides / 2)
      asides[#asides + 1] = names[slot]
    end
  end
  if claims > 0 then
    local found = call('HMGET', base .. ':run', unpack(ids))
    extras = call('HMGET', base .. ':extra', unpack(ids))
    for i = 1, claims do
      texts[size + i] = found[i]
      fits = fits and (not owners[i] or extras[i] and extras[i]:sub(1, 2) == '1,')
    end
  end
  -- The end of a job matters to an entry or a schedule only if there is one, and to parents only in levels that have them. A removed job may
  -- have steps.
  if size > 0 and (kept == 0 or level > 5 or call('EXISTS', base .. ':dedup', base .. ':schedules') > 0) then
    local marked = call('HMGET', base .. ':extra', unpack(settled))
    for i = 1, size do fits = fits and (not leaving[i] or marked[i] and marked[i]:sub(1, 2) == '1,') end
  end
end

-- The fourth part of the fast path (see `plain-settle`): the new run texts, locks and events of the jobs to claim, and the granted list
-- of the reply, as in `grant` of claim.lua.
local granted, locks, anyMarked = { nil, nil, nil }, { nil, nil }, false
if fits and claims > 0 then
  local start, after = format(ACTIVE_RUN, seq, '', '0'), '\0' .. ARGV[9]
  local lastText, numbers, before = nil, nil, nil
  local first, lastMade, lastStarted, lastRest, numbersOfGroup, beforeOfGroup = place + kept - 1 + (asides and #asides / 2 or 0), nil, nil, nil, nil, nil
  for i = 1, claims do
    local id, fence, text = ids[i], format(DIGITS, first + i), texts[size + i]
    local slot = owners and owners[i]
    if slot then
      -- The run texts of jobs of groups differ by their places.
      local made, started, rest = match(text or '', GROUPED_WAITS)
      if not made then
        fits = false
        break
      end
      if rest ~= lastRest or started ~= lastStarted or made ~= lastMade then
        lastMade, lastStarted, lastRest = made, started, rest
        numbersOfGroup = made .. (started == '0' and '1' or format(DIGITS, started + 1)) .. rest .. ',' .. moment
        beforeOfGroup = 'A' .. start:sub(2) .. numbersOfGroup .. '\0' .. owner
      end
    elseif text ~= lastText then
      local isMarked = level > 5 and text and text:byte() == 87
      local made, started, rest = match(isMarked and 'w' .. text:sub(2) or text or '', WAITS)
      if not made then
        fits = false
        break
      end
      numbers = made .. (started == '0' and '1' or format(DIGITS, started + 1)) .. rest .. ',' .. moment
      lastText, before = text, (isMarked and 'A' .. start:sub(2) or start) .. numbers .. '\0' .. owner
      anyMarked = anyMarked or isMarked
    end
    granted[3 * i - 2], granted[3 * i - 1], granted[3 * i] = id, fence, slot and numbersOfGroup or numbers
    runs[2 * (kept + i) - 1] = id
    runs[2 * (kept + i)] = slot and beforeOfGroup .. fence .. after .. '\0\0' .. names[slot] or before .. fence .. after
    locks[2 * i - 1], locks[2 * i] = fence, id
    told[3 * size + 2 * i - 1], told[3 * size + 2 * i] = 'X', id
  end
  -- A marked job fits if it is of a family and nothing else.
  if fits and anyMarked then
    extras = extras or call('HMGET', base .. ':extra', unpack(ids))
    for i = 1, claims do
      local isOther = not (owners and owners[i]) and texts[size + i]:byte() == 87 and not match(extras[i] or '', '^[246],')
      if isOther then fits = false end
    end
  end
end

-- A part of the fast path (see `plain-settle`): writes what the parts before it have made of jobs and locks.
if fits then
  local bound = base .. ':bound:' .. session
  if size > 1 and nextFence == firstFence + size then
    call('ZREMRANGEBYSCORE', bound, format(DIGITS, firstFence), format(DIGITS, nextFence - 1))
  elseif size > 0 then
    call('ZREM', bound, unpack(settled))
  end
  if #runs > 0 then call('HSET', base .. ':run', unpack(runs)) end
  if values then call('HSET', base .. ':value', unpack(values)) end
  if kept > 0 then call('ZADD', base .. ':completed', unpack(scores)) end
  if gone then
    local logs = { nil }
    for i = 1, #gone do logs[i] = base .. ':log:' .. gone[i] end
    call('UNLINK', unpack(logs))
    call('HDEL', base .. ':run', unpack(gone))
    call('HDEL', base .. ':job', unpack(gone))
    if kept > 0 then
      call('ZREM', base .. ':completed', unpack(gone))
      call('HDEL', base .. ':value', unpack(gone))
    end
    if sides == 1 then
      for _, side in pairs({ ':reason', ':stack', ':progress', ':lost' }) do call('HDEL', base .. side, unpack(gone)) end
    end
    if goneMarked and #goneMarked > 0 then call('HDEL', base .. ':extra', unpack(goneMarked)) end
  end
  if claims > 0 then
    if not grouped then used = claims end
    if used > 0 then call('ZREMRANGEBYRANK', base .. ':wait', 0, used - 1) end
    call('ZADD', bound, unpack(locks))
  end
end

-- A part of the fast path (see `plain-settle`), in a queue with groups: writes the groups, as `flush` and `write` in groups.lua do.
if fits and grouped then
  local STATE = DIGITS .. ',' .. DIGITS .. ',%s'
  local states, added, removed, back, gone, behind = {}, {}, {}, {}, {}, used == 0 and ids or {}
  for slot = 1, #names do
    local count, name, number, was = taken[slot], names[slot], numbers[slot], ats[slot]
    if count then
      local at = not number and '' or actives[slot] < maxActive and 'r' or 'a'
      if count > 0 then call('ZREMRANGEBYRANK', base .. ':members:' .. name, '0', count == 1 and '0' or format(DIGITS, count - 1)) end
      if number or actives[slot] > 0 then
        states[#states + 1] = name
        states[#states + 1] = number and format(STATE, actives[slot], number, at) or format(DIGITS, actives[slot]) .. ',,'
      else
        gone[#gone + 1] = name
      end
      if at ~= was then
        if was == 'r' then removed[#removed + 1] = name end
        if was == 'a' then back[#back + 1] = name end
        if at == 'r' then offers = true end
      end
      if at == 'r' and (was ~= 'r' or number ~= stated[slot]) then
        added[#added + 1] = format(DIGITS, number)
        added[#added + 1] = name
      end
    end
  end
  for i = 1, used > 0 and claims or 0 do
    if owners[i] then behind[#behind + 1] = ids[i] end
  end
  if #behind > 0 then call('ZREM', base .. ':behind:wait', unpack(behind)) end
  if #removed > 0 then call('ZREM', base .. ':ring', unpack(removed)) end
  if #back > 0 then call('ZREM', base .. ':aside', unpack(back)) end
  if #added > 0 then call('ZADD', base .. ':ring', unpack(added)) end
  if #asides > 0 then call('ZADD', base .. ':aside', unpack(asides)) end
  if #states > 0 then call('HSET', base .. ':groups', unpack(states)) end
  if #gone > 0 then
    call('HDEL', base .. ':groups', unpack(gone))
    call('ZREM', base .. ':groupNames', unpack(gone))
  end
  waiting = waiting or call('EXISTS', base .. ':wait', base .. ':prio', base .. ':behind:wait', base .. ':behind:prio') > 0
  turns, plainTurn, place = turn, plainAt, place + #asides / 2
end

-- A part of the fast path (see `plain-settle`): the call of the session, the counters, and the reply of `claim` in claim.lua.
if fits then
  local own = base .. ':s:' .. session
  local results = ('d'):rep(size)
  if size == 0 then call('HSET', own, 'seq' .. lane, seq)
  else call('HSET', own, 'seq' .. lane, seq, 'callSeq' .. lane, seq, 'results' .. lane, results) end

  if level > 3 and points > 0 then completedCount, completedCurrent = completedCount + size, completedCurrent + size end
  events, delays = size + claims, due and 1 or 0
  active = active - size + claims
  if kept + claims > 0 then tick = place + kept + claims - 1 end
  if size > 0 and active == 0 and not waiting then
    events = events + 1
    told[#told + 1] = 'E'
    if delays == 0 then largest = 0 end
  end
  if claims < most then jobsArmed = 1 end
  reply = { results, '1,0,0,' .. (due and ceil((due - micros) / 1000) or -1) .. (waiting and ',0' or ',1'), nil, nil }
  if claims > 0 then
    local jobs, length = call('HMGET', base .. ':job', unpack(ids)), 0
    for i = 1, claims do
      jobs[i] = jobs[i] or '\0\0\0'
      length = length + #jobs[i]
    end
    reply[3] = concat(granted, '\0')
    reply[4] = claims == 1 and jobs[1] or length <= SHORT and concat(jobs, '\0' .. granted[2] .. ',') or jobs
    local anyExtra = used < claims or anyMarked
    for i = 1, (sides == 1 or anyExtra) and 3 or 0 do
      reply[4 + i] = sides == 1 and call('HMGET', base .. (i == 1 and ':reason' or i == 2 and ':stack' or ':progress'), unpack(ids))
    end
    if anyExtra then reply[8] = extras end
  end
end

-- A part of the fast path (see `plain-settle`): tells the parents of completed children. It follows `plain-settle`, because the numbers
-- of messages are ticks behind those of the call. One number serves all links that one call changes.
if reply and ends then
  local own, sent, number, receivers = ARGV[16 + 3 * size] .. '\n', {}, nil, {}
  tick = tick + 1
  number = format(DIGITS, tick)
  for i = 1, #ends do
    local one = ends[i]
    local ids, bonds, values, fields, writes = one.ids, one.bonds, one.values, { '#p', '#d' }, {}
    for n = 1, one.links and #ids or 0 do fields[n + 2] = own .. ids[n] end
    local found = one.links and call('HMGET', one.links, unpack(fields)) or fields
    local pending, processed, lastBond, fresh, before = tonumber(found[1]) or 0, tonumber(found[2]), nil, nil, nil
    for n = 1, #ids do
      if bonds[n] ~= lastBond then
        lastBond = bonds[n]
        fresh, before = 'p,' .. lastBond .. ',0\0', 'd,' .. lastBond .. ',' .. number .. '\0'
      end
      if pending > 1 and found[n + 2] == fresh then
        pending, processed = pending - 1, processed + 1
        writes[#writes + 1] = fields[n + 2]
        writes[#writes + 1] = before .. values[n]
      else
        tick = tick + 1
        if not sent[one.queue] then
          sent[one.queue], receivers[#receivers + 1] = true, one.queue
          call('ZADD', base .. ':outbox', 'NX', format(DIGITS, tick), one.queue)
        end
        call('XADD', base .. ':outbox:' .. one.queue, format(DIGITS, tick) .. '-0', 'm',
          concat({ 'c', one.id, lastBond, ids[n], 'dw0', values[n] }, '\0'))
      end
    end
    if #writes > 0 then call('HSET', one.links, '#p', format(DIGITS, pending), '#d', format(DIGITS, processed), unpack(writes)) end
  end
  if #receivers > 0 then reply[1] = reply[1] .. '\0' .. concat(receivers, '\0') end
end

-- part: plain-save
-- Ends a fast path that has carried out its call: writes its events and the counters, wakes watchers, and returns the reply. `save` in
-- `queue` in queues.lua does the same for all other calls.
if reply then
  if events > 0 then
    event, version, told = event + events, version + 1, concat(told, '\0')
    eventBytes = eventBytes + #told
    call('XADD', base .. ':events', 'MINID', '~', format(DIGITS, math.max(eventMarkBefore, event - EVENTS_KEPT + 1)),
      format(DIGITS, event) .. '-' .. events, 'e', told)
    if eventBytes >= EVENTS_SEGMENT then eventMarkBefore, eventMark, eventBytes = eventMark, event + 1, 0 end
    if armed == 1 then
      redis.pcall('PUBLISH', base .. ':events-wake', version)
      armed = 0
    end
  end
  if offers then
    jobsVersion = jobsVersion + 1
    if jobsArmed == 1 then
      redis.pcall('PUBLISH', base .. ':jobs-wake', jobsVersion)
      jobsArmed = 0
    end
  end
  local counts = struct.pack(PACKED, $each{counters #})
  if level > 3 then counts = counts .. struct.pack(SETTINGS, $each{settings #}) end
  call('SET', base .. ':meta', counts)
  return reply
end

-- name: settle
-- use: clock run-texts counters plain-settle plain-save tools queue jobs groups lanes keys places enter marks marking families entries schedules metrics locks leave expiry reassure retention failing claim
-- Settles outcomes, then claims; either part may be absent. A repeated settle (same caller and seq) returns the first results.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: 1 caller ('': none, as in a claim alone), 2 seq, 3 lane, 4 withClaim (1 or 0), 5–10 the claim request (see `claimRequest` in
--   claim.lua; empty texts without a claim), 11 number of outcomes, from 12 on the outcomes in series, last the job ids of the claim
--   or, without a list of ids, what `plain-settle` reads.
--   series    consecutive outcomes of one kind and one session with the same `keep`: kind, size, keep, owner, then for each outcome
--             its job id, its fence and the texts of its kind
--   owner     the token up to its fence: session and colon
--   kind      c completed: value · f failed: reason, stacktrace · e failed with attempts left: reason, stacktrace
--             r retry: reason, stacktrace, delayMs, lifo · d delay: delayMs · w release · u return
--             s delay that records a step: delayMs, name, value, = and the signal that the job awaits ('': none)
--             k waits for its children: the child (queue LF id), '' for all
--   keep      '' keeps all, 0 keeps none, else count,ageMs, each empty if it does not limit
-- Returns a text with a letter for each outcome (d done, l lost, m missing, p pending, u unsuccessful, r ready, f full) and, if the script
-- has sent messages, NUL and the receiving queues with NUL between. Then follows the reply of `claim` in claim.lua.

-- Applies the outcomes of a settle. `settle` describes them, and calls `settleAll`.
local OUTCOMES_AT = 12
local TEXTS = { c = 3, f = 4, e = 4, r = 6, d = 3, s = 6, w = 2, u = 2, k = 3 }
local finishes, finishedOn = 0, digits(floor(now))

-- The writes of all outcomes, collected so that each hash gets one command.
local runs, values, reasons, stacks, gone = {}, {}, {}, {}, {}
local lists, keep = { c = {}, f = {} }, { c = {}, f = {} }
-- Jobs that fail because they were cancelled and would wait again.
local cancelled = {}

local function append(list, id, text)
  local size = #list
  list[size + 1], list[size + 2] = id, text
end

-- Finishes a job. Returns false if its outcome says that the job is not kept.
local function finish(series, id, at, made)
  finishes = finishes + 1
  local kind, text = series.kind, ARGV[at + 2]
  if settings then openMetrics().count(STATES[kind], 1) end
  if kind == 'f' then
    -- If attempts are left, the second event (retries-exhausted) is not emitted. Its number stays unused.
    tell(2, 'F', id, text, series.early and '' or made)
  else
    tell(1, 'C', id, series.keep == '0' and lastValue(id, text) or eventValue(text))
  end
  if series.keep == '0' then
    gone[#gone + 1] = id
    return false
  elseif series.keep ~= '' and not series.counts then
    series.counts = true
    local kept, count, age = keep[kind], match(series.keep, '^(%d*),(%d*)$')
    kept.count, kept.age = least(kept.count, tonumber(count)), least(kept.age, tonumber(age))
  end
  local list = lists[kind]
  list[#list + 1] = id
  if kind == 'f' then
    append(reasons, id, text)
    append(stacks, id, ARGV[at + 3])
  elseif text ~= 'null' then
    append(values, id, text)
  end
  return true
end

-- Moves an active job that is not plain, or that does not finish. Returns its run text; false if the job is not kept.
local function settleOther(series, job, at)
  local kind, token = series.kind, job.token
  local reason = kind ~= 'c' and kind ~= 'f' and job.marked and openMarking().cancelled(job)
  if reason then
    openFailing().cancel(job, reason)
    finishes, cancelled[#cancelled + 1] = finishes + 1, job
    return encode(job)
  end
  leave(job)
  if kind == 'c' or kind == 'f' then
    job.state, job.finished, job.token, job.made = kind, finishedOn, token, digits(job.made + 1)
    local isKept = finish(series, job.id, at, job.made)
    ended(job, { state = kind, text = ARGV[at + 2], made = job.made, token = token })
    return isKept and encode(job)
  elseif kind == 'r' then
    local reason, delay = ARGV[at + 2], ARGV[at + 4]
    job.made = job.made + 1
    append(reasons, job.id, reason)
    append(stacks, job.id, ARGV[at + 3])
    noteSize(#ARGV[at + 3])
    if delay ~= '0' then
      tell(1, 'L', job.id, putDelayed(job, delay), reason)
      if job.marked then openMarking().await(job) end
    else
      putWaiting(job, ARGV[at + 5] == '1')
      tell(1, 'R', job.id, reason)
    end
  elseif kind == 'd' or kind == 's' then
    tell(1, 'Y', job.id, putDelayed(job, ARGV[at + 2]))
    if job.marked then openMarking().await(job, kind == 's' and match(ARGV[at + 5], '^=(.*)$') or nil) end
  elseif kind == 'k' then
    openFamily().await(job, '0')
    tell(1, 'H', job.id)
  else
    if kind == 'u' then job.started = digits(job.started - 1) end
    putWaiting(job, true)
    tell(1, 'B', job.id)
  end
  return encode(job)
end

-- Returns why the children or the steps of an active job refuse the outcome; nil if they do not. Records the step of the outcome.
local function refusalOf(kind, job, at)
  if kind == 's' then return openMarking().recordDelay(job, ARGV[at + 3], ARGV[at + 4], match(ARGV[at + 5], '^=(.*)$')) end
  local child = ARGV[at + 2]
  if kind ~= 'k' and (kind ~= 'c' or not job.marked or queue.level < 6) then return nil end
  return openFamily().refusal(job.id, kind, kind == 'k' and child ~= '' and child or nil)
end

local MARKED_ACTIVE = ('A'):byte()
-- Jobs of one claim mostly have equal run texts up to the token. The result for the last such head is cached and used again.
local lastHead, lastEnds, lastMade, lastLeft

local function settleOne(series, id, text, at)
  local kind, fence = series.kind, ARGV[at + 1]
  local isFinish, marked = kind == 'c' or kind == 'f', false
  -- Fast path of most jobs: the run text is not decoded and encoded (see `grant`). The token is compared in place, because cutting it out
  -- would make one more string for each outcome. The token begins after the first NUL; otherwise the pattern below does not match.
  local first = isFinish and text:find(series.mark, 1, true)
  local fenceAt = first and first + #series.mark
  if first and fence ~= '' and text:find(fence, fenceAt, true) == fenceAt and text:byte(fenceAt + #fence) == 0 then
    marked = text:byte() == MARKED_ACTIVE
    local head = marked and 'a' .. text:sub(2, first) or text:sub(1, first)
    if head ~= lastHead then
      local ends, made, rest = match(head, HELD)
      lastHead, lastEnds = head, ends
      if ends then
        lastMade = NEXT[made] or digits(made + 1)
        -- The finished job keeps the token, so that a repeated finish is recognised.
        lastLeft = lastMade .. rest
      end
    end
    if lastEnds then
      local refusal = marked and kind == 'c' and queue.level > 5 and openFamily().refusal(id, kind)
      if refusal then return refusal end
      free(id, series.session, lastEnds, tonumber(fence))
      freeKeyIn(text)
      local isKept = finish(series, id, at, lastMade)
      if marked then ended({ id = id, marked = true }, { state = kind, text = ARGV[at + 2], made = lastMade, token = fence }) end
      local finished = marked and series.markedFinished or series.finished
      return 'd', isKept and finished .. lastLeft .. series.owner .. fence .. text:sub(fenceAt + #fence)
    end
  end
  local job, token = decode(id, text), series.owner .. fence
  if fence == '' or job.token ~= token then return 'l' end
  if job.state == 'a' then
    local refusal = refusalOf(kind, job, at)
    if refusal then return refusal end
    return 'd', settleOther(series, job, at)
  end
  return isFinish and job.state == kind and 'd' or 'l'
end

local function readSeries(at)
  local owner, early = ARGV[at + 3], ARGV[at] == 'e'
  local letter = early and 'f' or ARGV[at]
  return {
    kind = letter, early = early, size = tonumber(ARGV[at + 1]), keep = ARGV[at + 2], owner = owner, mark = '\0' .. owner,
    session = owner:sub(1, -2), finished = format(FINISHED_RUN, letter, finishedOn),
    markedFinished = format(FINISHED_RUN, letter:upper(), finishedOn),
  }
end

local function settleAll()
  local ids, starts, seriesOf, at, size = {}, {}, {}, OUTCOMES_AT, tonumber(ARGV[OUTCOMES_AT - 1])
  while #ids < size do
    local series = readSeries(at)
    local texts, known = TEXTS[series.kind], #ids
    for i = 1, series.size do
      local start = at + 4 + (i - 1) * texts
      ids[known + i], starts[known + i], seriesOf[known + i] = ARGV[start], start, series
    end
    at = at + 4 + series.size * texts
  end
  local texts, results, settled = fetch(key('run'), ids), {}, {}
  for i = 1, size do
    local id = ids[i]
    -- If a job has two outcomes in one call, the second is applied to the result of the first.
    local text = settled[id]
    if text == nil then text = texts[i] end
    if not text then
      results[i] = 'm'
    else
      local result, left = settleOne(seriesOf[i], id, text, starts[i])
      results[i] = result
      if left ~= nil then
        settled[id] = left
        if left then append(runs, id, left) end
      end
    end
  end
  flushUnlocked()
  many('HSET', key('run'), runs)
  many('HSET', key('value'), values)
  if #reasons > 0 then
    many('HSET', key('reason'), reasons)
    many('HSET', key('stack'), stacks)
    set('sides', 1)
  end
  erase(gone)
  if #cancelled > 0 then failing.store(cancelled) end
  for kind, list in pairs(lists) do
    if #list > 0 then putFinished(STATES[kind], list, keep[kind].count, keep[kind].age) end
  end
  return concat(results)
end

local caller, callSeq, lane, withClaim = ARGV[1], ARGV[2], ARGV[3], ARGV[4] == '1'
-- The last call of a worker is stored with its session. The last call of any other caller is stored for REMEMBERED_MS.
local REMEMBERED_MS = 15 * 60 * 1000
local memory = key('call' .. lane .. ':' .. caller)

-- Returns the seq of the caller's last settle, and its results.
local function recall()
  local session = openSession(caller)
  if session then
    local last = session.calls[lane]
    return last.callSeq or '0', last.results
  end
  return match(call('GET', memory) or '0,', '^(%d*),(.*)$')
end

-- Stores the seq and the results of this call. It must run after the claim: otherwise the claim, which has the same seq, would look
-- like a repetition.
local function remember(results)
  local session = openSession(caller)
  if not session then return call('SET', memory, callSeq .. ',' .. results, 'PX', REMEMBERED_MS) end
  local seq, last = tonumber(callSeq), session.calls[lane]
  if seq > last.seq then last.seq, last.seqText = seq, callSeq end
  keepSeq(caller, lane, 'callSeq' .. lane, callSeq, 'results' .. lane, results)
end

local results
if caller ~= '' then
  local last, remembered = recall()
  if tonumber(callSeq) < tonumber(last) then return straggler(caller, callSeq, last) end
  if callSeq == last then results = remembered end
end
local repeated = results ~= nil
if not repeated then results = settleAll() end
local request = withClaim and claimRequest(5)
local claimed = withClaim and claim(request)
if caller ~= '' and not repeated then remember(results) end
if withClaim and (request.session ~= caller or request.lane ~= lane or repeated) then
  keepSeq(request.session, request.lane)
end
if finishes > 0 and queue.active == 0 and not anyWaiting() then
  tell(1, 'E')
  -- Without delayed jobs, all jobs are finished: the bound on the size of unfinished jobs starts anew.
  if queue.delays == 0 then set('largest', 0) end
end
flushPlaces()
save()
results = results .. sentTo()
if claimed then return { results, unpack(claimed) } end
return { results }
