-- A part of the fast path (see plain-settle.lua), in a queue with groups: reads the first groups of the ring and those that the completed
-- jobs leave (contract/groups.ts has the rule, group-states.lua the keys). plain-turns.lua chooses the jobs to claim, in turn. They fit if all
-- groups that they meet have no settings, block or window of their own, and if the first groups of the ring have room and jobs.
-- names: the keys of the groups that were read; all other lists go by their index. slots: the index by key. actives, numbers (false: not in
-- line), ats: their states. stated: numbers as stored. members: the first waiting jobs. taken: how many of them are claimed. owners: by
-- claimed job, the index of its group, or false. turn, plainAt: the new turns and plainTurn. used: how many jobs without a group are claimed.
-- asides: ticks and keys of the groups that go aside. maxActive: the limit of all groups. extras: those of the jobs to claim.
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
