-- Schedules: their records, and how claims and ends of next jobs make them owing (the rule: see contract/scheduling.ts).
--   schedules        by id: version,serial,state,at,count NUL id of the next job NUL spec
--     serial         1 or 0
--     state          r running, o owing, p paused, e ended
--   scheduleSlots    the ids of all schedules by `at`
--   owing            the ids of owing schedules, the oldest debt first
--   scheduleChecks   the ids of running schedules by the time in ms at which a sweep looks at them next
--   scheduleVersion  the highest version of deleted schedules, for as long as a late call may name it
-- The bit `next` (IS_NEXT) is in the marks of the next job, and the id of the schedule in its extras (see deduplication.lua).
-- The first schedule of a queue raises its layout to 3.
local CHECKED_AFTER_MS = 60000

function schedules.get(id)
  local text, one = call('HGET', key('schedules'), id), { id = id }
  if not text then return nil end
  one.version, one.serial, one.state, one.at, one.count, one.nextId, one.spec =
    match(text, '^(%d+),(%d),(%a),([^,]*),([^,]*)%z([^%z]*)%z(.*)$')
  return one
end

function schedules.text(one)
  return concat({ one.version, one.serial, one.state, one.at, one.count }, ',') .. '\0' .. one.nextId .. '\0' .. one.spec
end

function schedules.set(one, state)
  one.state = state
  call('HSET', key('schedules'), one.id, schedules.text(one))
  call('ZADD', key('scheduleSlots'), one.at, one.id)
  if state == 'o' then call('ZADD', key('owing'), digits(ticks(1)), one.id) else call('ZREM', key('owing'), one.id) end
  if state == 'r' then
    call('ZADD', key('scheduleChecks'), digits(one.at + CHECKED_AFTER_MS), one.id)
  else
    call('ZREM', key('scheduleChecks'), one.id)
  end
  if queue.layout < 3 then set('layout', 3) end
end

-- Returns the version of a new schedule: epoch ms, but above the versions of deleted schedules, also if the clock was set back.
function schedules.firstVersion()
  return digits(math.max(floor(now), (call('GET', key('scheduleVersion')) or 0) + 1))
end

function schedules.delete(one)
  call('SET', key('scheduleVersion'), digits(math.max(one.version, schedules.firstVersion() - 1)), 'PX', ADD_REMEMBERED_MS)
  call('HDEL', key('schedules'), one.id)
  for _, place in ipairs({ 'scheduleSlots', 'owing', 'scheduleChecks' }) do call('ZREM', key(place), one.id) end
end
