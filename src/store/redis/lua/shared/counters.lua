-- The queue's counters as they are stored.
--   tick     the last number given out for fences and places: at least the clock in µs, so it grows across a failover too
--   front    the last place given out ahead of all that wait; below zero
--   active   how many locks there are
--   sides    1 when some job has or had a reason or progress
--   delays   1 when there may be delayed jobs
--   event, firstEvent, version, armed, jobsVersion, jobsArmed, locksVersion, locksArmed   see `save`
--   keys     1 when some job has or had a lock key
--   cap      one more than the jobs that may be active; 0 without a cap
-- They are packed numbers: as fields of a hash each would become a string, and making strings is most of what short scripts do.
local PACKED, PACKED_SIZE = '<ddddddddddddddddddddd', 21 * 8
local packed = call('GET', base .. ':meta') or ''
-- Shorter where it was written before there were so many: those that it lacks are 0.
if #packed < PACKED_SIZE then packed = packed .. ('\0'):rep(PACKED_SIZE - #packed) end
local tick, front, lastId, active, sides, delays, paused, limitedUntil, windowEnds, windowUsed, windowMax, event, firstEvent,
  version, armed, jobsVersion, jobsArmed, keys, cap, locksVersion, locksArmed = struct.unpack(PACKED, packed)
