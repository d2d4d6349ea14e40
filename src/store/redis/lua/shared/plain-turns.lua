-- The third part of the fast path (see plain-settle.lua), in a queue with groups: the groups that the completed jobs leave, and the jobs to
-- claim, in turn (contract/groups.ts has the rule, group-states.lua the keys). It fits if all groups that it meets have no settings, block
-- or window of their own, and if the first groups of the ring have room and jobs.
-- names: the keys of the groups that were read; all other lists go by their index. slots: the index by key. actives, numbers (false: not in
-- line), ats: their states. stated: numbers as stored. members: the first waiting jobs. taken: how many of them are claimed. owners: by
-- claimed job, the index of its group, or false. turn, plainAt: the new turns and plainTurn. used: how many jobs without a group are claimed.
-- asides: ticks and keys of the groups that go aside. maxActive: the limit of all groups. extras: those of the jobs to claim.
local names, slots, actives, numbers, stated, ats, members, taken, owners, asides, extras
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
    -- fresh: the groups with room in the order of their numbers. Those of the ring are sorted; those that come back from aside mostly have
    -- the highest numbers. Equal numbers are ordered by key, as Redis does it.
    local fresh, steps = {}, 0
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
    if not isFit then break end

    -- served: groups that got a turn in this claim, and that have room and jobs left.
    local plain, served, freshAt, servedAt, order = ids, {}, 1, 1, {}
    local chunk = #fresh > 0 and ceil(most / #fresh) or 0
    local lastRead = format(DIGITS, chunk)
    ids, owners, claims = {}, {}, 0
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
    if not isFit then break end

    asides = {}
    for i = 1, #order do
      local slot = order[i]
      if numbers[slot] then waiting = true end
      if numbers[slot] and actives[slot] >= maxActive then
        asides[#asides + 1] = format(DIGITS, place + size + #asides / 2)
        asides[#asides + 1] = names[slot]
      end
    end
    if claims > 0 then
      local found = call('HMGET', base .. ':run', unpack(ids))
      extras = call('HMGET', base .. ':extra', unpack(ids))
      for i = 1, claims do
        texts[size + i] = found[i]
        isFit = isFit and (not owners[i] or extras[i] and extras[i]:sub(1, 2) == '1,')
      end
    end
    -- The end of a job matters to an entry or a schedule only if there is one, and to parents only in layouts that have them.
    if size > 0 and (layout > 5 or call('EXISTS', base .. ':dedup', base .. ':schedules') > 0) then
      local marked = call('HMGET', base .. ':extra', unpack(settled))
      for i = 1, size do isFit = isFit and (not leaving[i] or marked[i] and marked[i]:sub(1, 2) == '1,') end
    end
    fits = isFit
  until true
end
