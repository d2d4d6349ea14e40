-- Ends a fast path that has carried out its call: writes its events and the counters, wakes watchers, and returns the reply. `save` in
-- queue.lua does the same for all other calls.
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
  if layout > 3 then counts = counts .. struct.pack(SETTINGS, $each{settings #}) end
  call('SET', base .. ':meta', counts)
  return reply
end
