-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks marking families entries schedules locks leave
-- Forgets events of a queue, or an emptied queue with its events.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: keep, the number of newest events to keep; all (1: also reset the settings and the id counter of the queue).
-- Returns how many events it removed; -1 if there are more schedules than a call deletes (call again).
-- A stream entry holds many events. If some of them are kept, the entry stays, and `firstEvent` hides the removed ones.
-- Deletes schedules with the next jobs that have not started, at most BITE. Returns whether there are more.
local BITE = 100
local function forgetSchedules()
  local ids = call('ZRANGE', key('scheduleSlots'), 0, BITE)
  for i = 1, math.min(#ids, BITE) do
    local one = openSchedules().get(ids[i]) or { id = ids[i], version = 0, nextId = '' }
    local job = find(one.nextId)
    if job and schedules.isStarted(job) then
      schedules.giveUp(one)
    elseif job then
      remove(job)
      erase({ job.id })
    end
    schedules.delete(one)
  end
  flushPlaces()
  return #ids > BITE
end

if ARGV[2] == '1' and queue.layout > 2 and forgetSchedules() then
  save()
  return -1
end
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
  call('UNLINK', key('dedup'), key('dedupEnds'), key('minutes:completed'), key('minutes:failed'))
  -- The limits of all groups stay while a session is open.
  local limits = settings and call('EXISTS', key('sessions')) == 1 and settings.groupActive + settings.groupMax > 0 and settings
  -- Without groups and marked jobs, processes of older versions may use the queue again.
  local hasMessages = call('EXISTS', key('outbox'), key('waiting-children')) > 0
  local hasGroups = limits or call('EXISTS', key('groups')) == 1
  settings = (hasMessages or hasGroups) and { $each{settings # = 0} } or nil
  for _, name in ipairs(limits and { 'groupActive', 'groupMax', 'groupMs' } or {}) do settings[name] = limits[name] end
  set('layout', hasMessages and 6 or hasGroups and 5 or call('EXISTS', key('extra')) == 0 and 1 or 2)
  call('UNLINK', key('kin'), key('own-name'))
  -- A message that was applied may still arrive once more.
  call('PEXPIRE', key('inbox'), ADD_REMEMBERED_MS)
  offer()
end
save()
return went
