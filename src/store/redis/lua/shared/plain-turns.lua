-- A part of the fast path (see plain-settle.lua), in a queue with groups: chooses the jobs to claim, in turn, of the groups that
-- plain-groups.lua has read. order: the groups that got a turn.
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
