-- Fast path for most adds, in a straight line as in plain-settle.lua: jobs without a given id, priority, delay, lifo and lock key.
-- If a call does not fit the fast path, it leaves before it has changed anything, and add.lua carries the call out.
-- More than a thousand jobs would not fit on Lua's stack.
if #ARGV == 3 + ARGV[3] and #ARGV > 3 and #ARGV <= 1003 then
  repeat
    local size = #ARGV - 3
    local memory, run = base .. ':added:' .. ARGV[1], base .. ':run'
    local last = match(call('GET', memory) or '0', '^%d*')
    if tonumber(ARGV[2]) <= tonumber(last) then break end

    local added = 'w,,,0,,,0,0,0,0,0,' .. format(DIGITS, floor(now)) .. ',\0\0'
    local place = tick < micros and micros or tick + 1
    local ids, runs, jobs, waits, told = {}, {}, {}, {}, {}
    for i = 1, size do
      local id, text = format(DIGITS, lastId + i), ARGV[3 + i]
      ids[i] = id
      if #text > largest then largest = #text end
      jobs[2 * i - 1], jobs[2 * i] = id, text
      runs[2 * i - 1], runs[2 * i] = id, added
      waits[2 * i - 1], waits[2 * i] = format(DIGITS, place + i - 1), id
      told[3 * i - 2], told[3 * i - 1], told[3 * i] = 'N', id, match(text, '^[^%z]*%z([^%z]*)')
    end
    -- If a user gave one of these ids to a job before, add.lua skips that id.
    if size == 1 then
      if call('HSETNX', run, ids[1], added) == 0 then break end
    else
      local known, anyKnown = call('HMGET', run, unpack(ids)), false
      for i = 1, size do anyKnown = anyKnown or known[i] end
      if anyKnown then break end
      call('HSET', run, unpack(runs))
    end
    call('HSET', base .. ':job', unpack(jobs))
    call('ZADD', base .. ':wait', unpack(waits))
    local reply = ids[1] .. ',' .. ARGV[3]
    call('SET', memory, ARGV[2] .. ',' .. reply, 'PX', ADD_REMEMBERED_MS)

    tick, lastId, event = place + size - 1, lastId + size, event + 2 * size
    told = concat(told, '\0')
    eventBytes = eventBytes + #told
    call('XADD', base .. ':events', 'MINID', '~', format(DIGITS, math.max(eventMarkBefore, event - EVENTS_KEPT + 1)),
      format(DIGITS, event) .. '-' .. 2 * size, 'e', told)
    if eventBytes >= EVENTS_SEGMENT then eventMarkBefore, eventMark, eventBytes = eventMark, event + 1, 0 end
    version, jobsVersion = version + 1, jobsVersion + 1
    if armed == 1 then
      redis.pcall('PUBLISH', base .. ':events-wake', version)
      armed = 0
    end
    if jobsArmed == 1 then
      redis.pcall('PUBLISH', base .. ':jobs-wake', jobsVersion)
      jobsArmed = 0
    end
    call('SET', base .. ':meta', struct.pack(PACKED, tick, front, lastId, active, sides, delays, paused, limitedUntil, windowEnds,
      windowUsed, windowMax, event, firstEvent, version, armed, jobsVersion, jobsArmed, keys, cap, locksVersion, locksArmed, largest,
      eventBytes, eventMark, eventMarkBefore, LAYOUT))
    return reply
  until true
end
