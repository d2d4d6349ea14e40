-- What every script starts from: the keys of one queue, Redis' clock, the queue's counters, and the events that the script tells.
-- KEYS[1] is the queue's hash tag. Every other key is the tag and a suffix, so that all of them lie in one slot.
-- Scripts change the counters with `set`, tell events with `tell`, and write both with one `save` at their end.
local base = KEYS[1]
local call, format, match, concat, ceil, floor = redis.call, string.format, string.match, table.concat, math.ceil, math.floor

local function key(suffix) return base .. ':' .. suffix end

local clock = call('TIME')
local micros = clock[1] * 1000000 + clock[2]
-- Milliseconds, with a fraction: ends are rounded up, so that nothing ends early.
local now = micros / 1000

-- tick           the last number given out for fences and places: at least the clock in µs, so it grows across a failover too
-- front          the last place given out ahead of all that wait; below zero
-- event, firstEvent, version, armed   see `save`
local COUNTERS = {
  'tick', 'front', 'lastId', 'paused', 'limitedUntil', 'windowEnds', 'windowUsed', 'windowMax', 'event', 'firstEvent', 'version', 'armed',
}
local queue, dirty, touched = {}, {}, false
do
  local values = call('HMGET', key('meta'), unpack(COUNTERS))
  for i = 1, #COUNTERS do queue[COUNTERS[i]] = tonumber(values[i]) or 0 end
end

local function set(name, value)
  queue[name] = value
  dirty[name] = true
end

-- The first of `count` numbers that nobody else gets.
local function ticks(count)
  local first = queue.tick + 1
  if first < micros then first = micros end
  set('tick', first + count - 1)
  return first
end

-- Lua's own conversion keeps 14 digits; ticks have 16.
local function digits(number) return format('%.0f', number) end

-- Lua's stack holds about 8000 values: longer lists go in several commands.
local AT_ONCE = 4000
local function many(command, target, list)
  local size = #list
  if size == 0 then return end
  if size <= AT_ONCE then return call(command, target, unpack(list)) end
  for first = 1, size, AT_ONCE do call(command, target, unpack(list, first, math.min(first + AT_ONCE - 1, size))) end
end

-- The values of `fields`, false for those that are not there.
local function fetch(target, fields)
  local size = #fields
  if size == 0 then return {} end
  if size <= AT_ONCE then return call('HMGET', target, unpack(fields)) end
  local values = {}
  for first = 1, size, AT_ONCE do
    local part = call('HMGET', target, unpack(fields, first, math.min(first + AT_ONCE - 1, size)))
    for i = 1, #part do values[first + i - 1] = part[i] end
  end
  return values
end

-- Events are told as letters and texts, one record after the other; events.ts knows how many texts a letter has and which events it
-- stands for. `count` is how many that are.
local told, toldSize, toldEvents = {}, 0, 0
local function tell(count, letter, a, b, c)
  toldEvents = toldEvents + count
  told[toldSize + 1] = letter
  toldSize = toldSize + 1
  if a then toldSize = toldSize + 1 told[toldSize] = a end
  if b then toldSize = toldSize + 1 told[toldSize] = b end
  if c then toldSize = toldSize + 1 told[toldSize] = c end
end

-- Something changed that no event tells of.
local function touch() touched = true end

-- One entry of the stream holds all events of a script. Its id is the number of its last event and how many they are, so that the
-- entry with any event is found by a range. Watchers arm the queue; the first change after that is published, and no other until
-- they have looked and armed it again: a busy queue does not flood idle watchers.
local EVENTS_KEPT = 10000
local function save()
  if toldEvents > 0 then
    local last = queue.event + toldEvents
    local oldest = last - EVENTS_KEPT + 1
    call('XADD', key('events'), 'MINID', '~', oldest > 0 and oldest or 0, digits(last) .. '-' .. toldEvents, 'e', concat(told, '\0'))
    set('event', last)
    touched = true
  end
  if touched then
    set('version', queue.version + 1)
    -- Without the right to publish, watchers find changes by looking.
    if queue.armed == 1 then
      redis.pcall('PUBLISH', key('wake'), '')
      set('armed', 0)
    end
  end
  local fields, size = {}, 0
  for name in pairs(dirty) do
    fields[size + 1], fields[size + 2] = name, queue[name]
    size = size + 2
  end
  if size > 0 then call('HSET', key('meta'), unpack(fields)) end
end
