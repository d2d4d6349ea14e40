-- use: clock counters queue
-- Forgets events of a queue, or an emptied queue with its events.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: keep, the number of newest events to keep; all (1: also reset the settings and the id counter of the queue).
-- Returns how many events it removed.
-- A stream entry holds many events. If some of them are kept, the entry stays, and `firstEvent` hides the removed ones.
local oldest = call('XRANGE', key('events'), '-', '+', 'COUNT', 1)[1]
local first = queue.event + 1
if oldest then
  local last, count = match(oldest[1], '^(%d+)-(%d+)$')
  first = math.max(queue.firstEvent, last - count + 1)
end
local wanted = queue.event - tonumber(ARGV[1]) + 1
local went = math.max(0, math.min(wanted, queue.event + 1) - first)
if went > 0 then
  set('firstEvent', first + went)
  call('XTRIM', key('events'), 'MINID', digits(first + went))
  call('XTRIM', key('event-values'), 'MINID', digits(first + went))
end
if ARGV[1] == '0' then call('UNLINK', key('event-values'), key('event-value-marks')) end
if ARGV[2] == '1' then
  for _, name in ipairs({ 'paused', 'limitedUntil', 'windowEnds', 'lastId', 'cap' }) do set(name, 0) end
  offer()
end
save()
return went
