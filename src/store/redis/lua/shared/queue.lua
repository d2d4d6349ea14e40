-- The counters of the queue and the events of the script. `set` changes a counter, `tell` records an event, and one `save` at the end of
-- the script writes both and wakes watchers.
-- dirty: a counter has changed. touched: watchers of events are woken. offered: watchers of jobs are woken.
local dirty, touched, offered = false, false, false
-- vacated: jobs have left active under a cap; other sessions may use the free slots unless this script claims again itself.
-- turned: ids of jobs that became claimable because their lock key is free. A worker that frees a key mostly claims its next job in the
-- same script; then no other worker needs to be woken for that job.
-- namesFreed: a named lock may be free.
local vacated, turned, namesFreed = false, nil, false
-- The table is made with all fields at once: a table that grows field by field is reallocated several times.
local queue = {
  $each{counters # = #},
}
-- The second list of counters.lua; nil if the queue has none of them.
local settings = layout > 3 and { $each{settings # = #} } or nil

local function set(name, value)
  queue[name] = value
  dirty = true
end

-- Reserves `count` ticks for this caller alone. Returns the first of them.
local function ticks(count)
  local first = queue.tick + 1
  if first < micros then first = micros end
  set('tick', first + count - 1)
  return first
end

-- Records events as a letter and its texts. events.ts lists how many texts follow a letter, and the events that it stands for; `count`
-- is the number of these events.
local told, toldSize, toldEvents = {}, 0, 0
local function tell(count, letter, a, b, c)
  toldEvents = toldEvents + count
  told[toldSize + 1] = letter
  toldSize = toldSize + 1
  if a then toldSize = toldSize + 1 told[toldSize] = a end
  if b then toldSize = toldSize + 1 told[toldSize] = b end
  if c then toldSize = toldSize + 1 told[toldSize] = c end
end

-- Records the size of a text of an unfinished job: see `largest` in counters.lua.
local function noteSize(bytes)
  if bytes > queue.largest then set('largest', bytes) end
end

-- Records a change that emits no event, so that watchers of events are woken.
local function touch() touched = true end

-- Returns the value of a result or a progress for an event.
local function eventValue(text) return #text > EVENT_VALUE_BYTES and LARGE_VALUE or text end

-- Returns the same for the result of a job that is removed when it finishes. A large result is stored beside the log, so that the log
-- can drop the result and keep the event.
local valuesBeside = nil
local function lastValue(id, text)
  if #text <= EVENT_VALUE_BYTES then return text end
  valuesBeside = valuesBeside or {}
  valuesBeside[#valuesBeside + 1] = { id, text }
  return LARGE_VALUE
end

-- Stores large results, one stream entry per value. The first part of the entry's id is the number of the last event of the script.
-- The stream is bounded by bytes: `bytes` were written since the event `mark`, and one segment before that, since the event `before`.
-- Older entries are dropped.
local function saveValues(last)
  local bytes, mark, before = match(call('GET', key('event-value-marks')) or '0 0 0', '^(%d+) (%S+) (%S+)$')
  -- All values of one script belong to the same segment, so they are dropped together: a reader rarely finds only a part of them.
  if tonumber(bytes) >= EVENTS_SEGMENT then bytes, mark, before = 0, digits(last), mark end
  for i = 1, #valuesBeside do
    local job, text = valuesBeside[i][1], valuesBeside[i][2]
    call('XADD', key('event-values'), 'MINID', before, digits(last) .. '-' .. i, job, text)
    bytes = bytes + #text
  end
  call('SET', key('event-value-marks'), digits(bytes) .. ' ' .. mark .. ' ' .. before)
end

-- Records that a job may be claimable, now or at a time that workers do not know yet.
local function offer() touched, offered = true, true end

-- Counts a change and publishes it if the queue is armed. Watchers arm the queue (watch.lua); only the first change after that is
-- published, until watchers arm the queue again. So a busy queue does not flood idle watchers.
local function wake(channel, version, armed)
  set(version, queue[version] + 1)
  -- pcall: if the user lacks the right to publish, watchers still find changes by polling.
  if queue[armed] == 1 then
    redis.pcall('PUBLISH', key(channel), queue[version])
    set(armed, 0)
  end
end

-- Writes the events and the counters, and wakes watchers. One entry of the stream holds all events of a script. The entry's id is the
-- number of its last event and the number of its events, so a range query finds the entry of any event.
-- The log is bounded by count and by bytes: `eventBytes` were written since the event `eventMark`, and one segment before that, since
-- `eventMarkBefore`. Older events are dropped. Watchers of jobs, of named locks and of events are woken separately.
-- atEnd: writes what a part has put off until the end of the script.
local arming, atEnd = false, nil
local function save()
  if atEnd then atEnd() end
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
    local counts = struct.pack(PACKED, $each{counters queue.#})
    if settings then counts = counts .. struct.pack(SETTINGS, $each{settings settings.#}) end
    call('SET', key('meta'), counts)
  end
end
