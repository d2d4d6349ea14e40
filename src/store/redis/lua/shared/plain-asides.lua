-- A part of the fast path (see plain-settle.lua), in a queue with groups: the groups that go aside after plain-turns.lua, and the texts of the
-- jobs to claim. A job of a group fits if its group is all that it is marked for.
if fits and grouped then
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
      fits = fits and (not owners[i] or extras[i] and extras[i]:sub(1, 2) == '1,')
    end
  end
  -- The end of a job matters to an entry or a schedule only if there is one, and to parents only in layouts that have them.
  if size > 0 and (layout > 5 or call('EXISTS', base .. ':dedup', base .. ':schedules') > 0) then
    local marked = call('HMGET', base .. ':extra', unpack(settled))
    for i = 1, size do fits = fits and (not leaving[i] or marked[i] and marked[i]:sub(1, 2) == '1,') end
  end
end
