-- The last part of the fast path (see plain-settle.lua): writes what the parts before it have made, and the reply of `claim` in claim.lua.
if fits then
  local own, bound = base .. ':s:' .. session, base .. ':bound:' .. session
  if size > 1 and nextFence == firstFence + size then
    call('ZREMRANGEBYSCORE', bound, format(DIGITS, firstFence), format(DIGITS, nextFence - 1))
  elseif size > 0 then
    call('ZREM', bound, unpack(settled))
  end
  if #runs > 0 then call('HSET', base .. ':run', unpack(runs)) end
  if values then call('HSET', base .. ':value', unpack(values)) end
  if size > 0 then call('ZADD', base .. ':completed', unpack(scores)) end
  if claims > 0 then
    if not grouped then used = claims end
    if used > 0 then call('ZREMRANGEBYRANK', base .. ':wait', 0, used - 1) end
    call('ZADD', bound, unpack(locks))
  end
  if grouped then
    -- What `flush` and `write` in group-places.lua do.
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
  local results = ('d'):rep(size)
  if size == 0 then call('HSET', own, 'seq' .. lane, seq)
  else call('HSET', own, 'seq' .. lane, seq, 'callSeq' .. lane, seq, 'results' .. lane, results) end

  if layout > 3 and points > 0 then completedCount, completedCurrent = completedCount + size, completedCurrent + size end
  events, delays = size + claims, due and 1 or 0
  if events > 0 then tick, active = place + events - 1, active - size + claims end
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
