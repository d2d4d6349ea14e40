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
--   layout   version of the key layout of this queue. A script that knows only older layouts returns an error and changes nothing
-- The counters are packed numbers in one text. As fields of a hash, each would become a string, and making strings is most of the cost
-- of short scripts.
local PACKED, PACKED_SIZE, LAYOUT = '<dddddddddddddddddddddddddd', 26 * 8, 1
local packed = call('GET', base .. ':meta') or ''
local lacks = PACKED_SIZE - #packed
-- An older version, which had fewer counters, wrote a shorter text: the missing counters are 0.
if lacks > 0 then packed = packed .. ('\0'):rep(lacks) end
local tick, front, lastId, active, sides, delays, paused, limitedUntil, windowEnds, windowUsed, windowMax, event, firstEvent,
  version, armed, jobsVersion, jobsArmed, keys, cap, locksVersion, locksArmed, largest, eventBytes, eventMark, eventMarkBefore,
  layout = struct.unpack(PACKED, packed)
if layout > LAYOUT then
  return { err = 'HOLDFAST NEWER The keys of the queue have layout ' .. layout .. ', and this version of Holdfast knows ' .. LAYOUT .. '.' }
end
-- An older version wrote the counters, and did not measure the jobs that it added: their size is unknown.
if lacks > 0 and lacks < PACKED_SIZE then largest = math.huge end
