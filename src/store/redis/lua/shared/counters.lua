-- The queue's counters as they are stored.
--   tick     the last number given out for fences and places: at least the clock in µs, so it grows across a failover too
--   front    the last place given out ahead of all that wait; below zero
--   active   how many locks there are
--   sides    1 when some job has or had a reason or progress, or was lost by its owner
--   delays   1 when there may be delayed jobs
--   event, firstEvent, version, armed, jobsVersion, jobsArmed, locksVersion, locksArmed   see `save`
--   keys     1 when some job has or had a lock key
--   cap      one more than the jobs that may be active; 0 without a cap
--   largest  no job that is not finished has a longer text, stack trace or progress: claims measure jobs only where that matters
--   eventBytes, eventMark, eventMarkBefore   see `save`
--   layout   of the keys of this queue. A script that knows only older ones touches nothing
-- They are packed numbers: as fields of a hash each would become a string, and making strings is most of what short scripts do.
local PACKED, PACKED_SIZE, LAYOUT = '<dddddddddddddddddddddddddd', 26 * 8, 1
local packed = call('GET', base .. ':meta') or ''
local lacks = PACKED_SIZE - #packed
-- Shorter where it was written before there were so many: those that it lacks are 0.
if lacks > 0 then packed = packed .. ('\0'):rep(lacks) end
local tick, front, lastId, active, sides, delays, paused, limitedUntil, windowEnds, windowUsed, windowMax, event, firstEvent,
  version, armed, jobsVersion, jobsArmed, keys, cap, locksVersion, locksArmed, largest, eventBytes, eventMark, eventMarkBefore,
  layout = struct.unpack(PACKED, packed)
if layout > LAYOUT then
  return { err = 'HOLDFAST NEWER The keys of the queue have layout ' .. layout .. ', and this version of Holdfast knows ' .. LAYOUT .. '.' }
end
-- Written by an older version, which did not measure what it added.
if lacks > 0 and lacks < PACKED_SIZE then largest = math.huge end
