-- The queue's counters and the events that the script tells: changed with `set`, told with `tell`, both written by one `save`.
local dirty, touched, offered = false, false, false
-- vacated: jobs have left active; under a cap, others may have their places unless this script gives them away itself.
-- turned: ids of jobs that may be claimed since their key is free. Whoever frees a key mostly claims its next job in the same
-- script, and nobody need be woken for that one. namesFreed: a named lock may be had.
local vacated, turned, namesFreed = false, nil, false
-- Made at once: a table that grows field by field is made anew again and again.
local queue = {
  tick = tick, front = front, lastId = lastId, active = active, sides = sides, delays = delays, paused = paused,
  limitedUntil = limitedUntil, windowEnds = windowEnds, windowUsed = windowUsed, windowMax = windowMax, event = event,
  firstEvent = firstEvent, version = version, armed = armed, jobsVersion = jobsVersion, jobsArmed = jobsArmed, keys = keys,
  cap = cap, locksVersion = locksVersion, locksArmed = locksArmed, largest = largest, eventBytes = eventBytes,
  eventMark = eventMark, eventMarkBefore = eventMarkBefore,
}

local function set(name, value)
  queue[name] = value
  dirty = true
end

-- The first of `count` numbers that nobody else gets.
local function ticks(count)
  local first = queue.tick + 1
  if first < micros then first = micros end
  set('tick', first + count - 1)
  return first
end

-- Events are told as letters and texts, one record after the other; events.ts knows how many texts a letter has and which events
-- it stands for. `count` is how many that are.
local told, toldSize, toldEvents = {}, 0, 0
local function tell(count, letter, a, b, c)
  toldEvents = toldEvents + count
  told[toldSize + 1] = letter
  toldSize = toldSize + 1
  if a then toldSize = toldSize + 1 told[toldSize] = a end
  if b then toldSize = toldSize + 1 told[toldSize] = b end
  if c then toldSize = toldSize + 1 told[toldSize] = c end
end

-- A job that is not finished has a text of so many bytes.
local function noteSize(bytes)
  if bytes > queue.largest then set('largest', bytes) end
end

-- Something changed that no event tells of.
local function touch() touched = true end

-- What an event says of a result or a progress.
local function eventValue(text) return #text > EVENT_VALUE_BYTES and LARGE_VALUE or text end

-- The same of the result of a job that is removed with it. A large one lies beside the log, so that the log can drop it and keep the event.
local valuesBeside = nil
local function lastValue(id, text)
  if #text <= EVENT_VALUE_BYTES then return text end
  valuesBeside = valuesBeside or {}
  valuesBeside[#valuesBeside + 1] = { id, text }
  return LARGE_VALUE
end

-- One entry per value; the first part of its id is the number of the last event of the script. They are bounded as events are: `bytes`
-- were written since the event `mark`, and a segment's worth before that, since `before`; what is older goes.
local function saveValues(last)
  local bytes, mark, before = match(call('GET', key('event-value-marks')) or '0 0 0', '^(%d+) (%S+) (%S+)$')
  -- Those of one script go together: a reader can hardly come in between.
  if tonumber(bytes) >= EVENTS_SEGMENT then bytes, mark, before = 0, digits(last), mark end
  for i = 1, #valuesBeside do
    local job, text = valuesBeside[i][1], valuesBeside[i][2]
    call('XADD', key('event-values'), 'MINID', before, digits(last) .. '-' .. i, job, text)
    bytes = bytes + #text
  end
  call('SET', key('event-value-marks'), digits(bytes) .. ' ' .. mark .. ' ' .. before)
end

-- Something may be claimable, now or at a time that nobody has been told.
local function offer() touched, offered = true, true end

-- Watchers arm the queue; the first change after that is published, and no other until they have looked and armed it again: a busy
-- queue does not flood idle watchers.
local function wake(channel, version, armed)
  set(version, queue[version] + 1)
  -- Without the right to publish, watchers find changes by looking.
  if queue[armed] == 1 then
    redis.pcall('PUBLISH', key(channel), queue[version])
    set(armed, 0)
  end
end

-- One entry of the stream holds all events of a script. Its id is the number of its last event and how many they are, so that the
-- entry with any event is found by a range. The log is bounded by numbers and by bytes: `eventBytes` were written since the event
-- `eventMark`, and a segment's worth before that, since `eventMarkBefore`; what is older goes. Whoever waits for jobs or for named locks is woken apart from whoever waits for events.
local arming = false
local function save()
  if toldEvents > 0 then
    local last, body = queue.event + toldEvents, concat(told, '\0')
    local oldest = math.max(queue.eventMarkBefore, last - EVENTS_KEPT + 1)
    local id = digits(last) .. '-' .. toldEvents
    call('XADD', key('events'), 'MINID', '~', digits(oldest), id, 'e', body)
    if valuesBeside then saveValues(last) end
    set('event', last)
    set('eventBytes', queue.eventBytes + #body)
    if queue.eventBytes >= EVENTS_SEGMENT then
      set('eventMarkBefore', queue.eventMark)
      set('eventMark', last + 1)
      set('eventBytes', 0)
    end
    touched = true
  end
  if (turned and next(turned)) or (vacated and queue.active < queue.cap - 1) then offer() end
  if touched or namesFreed then wake('events-wake', 'version', 'armed') end
  if offered then wake('jobs-wake', 'jobsVersion', 'jobsArmed') end
  if namesFreed then wake('locks-wake', 'locksVersion', 'locksArmed') end
  if arming and queue.jobsArmed == 0 then set('jobsArmed', 1) end
  if dirty then
    local text = struct.pack(PACKED, queue.tick, queue.front, queue.lastId, queue.active, queue.sides, queue.delays, queue.paused,
      queue.limitedUntil, queue.windowEnds, queue.windowUsed, queue.windowMax, queue.event, queue.firstEvent, queue.version,
      queue.armed, queue.jobsVersion, queue.jobsArmed, queue.keys, queue.cap, queue.locksVersion, queue.locksArmed, queue.largest,
      queue.eventBytes, queue.eventMark, queue.eventMarkBefore, LAYOUT)
    call('SET', key('meta'), text)
  end
end
