-- Reads the counters and settings of the queue. `save` in queue.lua writes them.
--   tick     the last number given out for fences and places: at least the clock in µs, so it grows across a failover too
--   front    the last place given out ahead of all waiting jobs; below zero
--   active   the number of job locks
--   sides    1 when some job has or had a reason or progress, or was lost by its owner
--   delays   1 when there may be delayed jobs
--   event, firstEvent, version, armed, jobsVersion, jobsArmed, locksVersion, locksArmed   see `save`
--   keys     1 when some job has or had a lock key
--   cap      one more than the jobs that may be active; 0 without a cap
--   largest  upper bound in bytes for the text, stack trace and progress of each unfinished job. Claims measure jobs only if that many
--            jobs of this size would exceed a reply
--   eventBytes, eventMark, eventMarkBefore   see `save`
--   layout   version of the key layout of this queue. A script that knows only older layouts returns an error and changes nothing.
--            2 once the queue has had a marked job (see deduplication.lua), 3 once it has had a schedule (see schedule-records.lua), 4 once it
--            has had a rate or metrics, 5 once it has had a group (see group-states.lua), 6 once it has had a family or a dead letter (see
--            outbox.lua)
-- The second list follows the counters in queues of layout 4 and higher. Other queues do not pay for it.
--   rateMax, rateMs   one more than `max` of the rate, 0 without a rate; its duration in ms
--   points            one more than the whole minutes that are kept for metrics; 0 if the queue does not count
--   completedCount, completedMinute, completedCurrent, completedFirst, and the same for failed jobs: see minutes.lua
--   turns, plainTurn, groupActive, groupMax, groupMs, recheck   see group-states.lua
-- The counters are packed numbers in one text. As fields of a hash, each would become a string, and making strings is most of the cost
-- of short scripts.
local PACKED, SETTINGS, LAYOUT = '<$packing{counters}', '<$packing{settings}', 6
local packed = call('GET', base .. ':meta') or ''
local size = 8 * (#PACKED - 1)
local lacks = size - #packed
-- An older version, which had fewer counters, wrote a shorter text: the missing counters are 0.
if lacks > 0 then packed = packed .. ('\0'):rep(lacks) end
local $each{counters #} = struct.unpack(PACKED, packed)
if layout > LAYOUT then
  return { err = 'HOLDFAST NEWER The keys of the queue have layout ' .. layout .. ', and this version of Holdfast knows ' .. LAYOUT .. '.' }
end
if layout == 0 then layout = 1 end
local $each{settings #}
if layout > 3 then
  local short = size + 8 * (#SETTINGS - 1) - #packed
  if short > 0 then packed = packed .. ('\0'):rep(short) end
  $each{settings #} = struct.unpack(SETTINGS, packed, size + 1)
end
-- An older version wrote the counters, and did not measure the jobs that it added: their size is unknown.
if lacks > 0 and lacks < size then largest = math.huge end
