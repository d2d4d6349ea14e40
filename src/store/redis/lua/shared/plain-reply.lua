-- A part of the fast path (see plain-settle.lua): the call of the session, the counters, and the reply of `claim` in claim.lua.
if fits then
  local own = base .. ':s:' .. session
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
