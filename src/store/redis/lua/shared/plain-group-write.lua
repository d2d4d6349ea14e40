-- A part of the fast path (see plain-settle.lua), in a queue with groups: writes the groups, as `flush` and `write` in group-places.lua do.
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
