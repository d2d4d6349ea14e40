-- The run text of a job, which every state change rewrites:
--   state,seq,ends,timed,finished,ord,delay,made,started,priority,stalls,added,processed NUL token NUL by, and with a lock key NUL key,
--   with a group NUL NUL key of the group
--   state    w waiting, d delayed, a active, c completed, f failed, p waiting-children; a capital letter if the job is marked (see deduplication.lua)
--   seq      seq of the claim, while the job is active
--   ends     the lock's own end. timed 1: the lock ends then; timed 0: it lives as long as its session, and at least until `ends`
--   ord      the place as 16 digits, which begin the members of `prio` and of key groups; only while the job waits with a priority,
--            a lock key or a group
--   ends, finished, added, processed   ms on Redis' clock
--   token    session:fence of the owner; in a finished job, of the owner that finished it
--   by       `=` and processedBy, the name that the claim gave; empty if there is none
-- The fast paths do not decode run texts: they use these patterns and templates, which begin with a small letter. So a marked job fits a
-- fast path only if its group or its family is all that it is marked for (see plain-asides.lua, plain-children.lua and plain-grant.lua).
-- A queue without lock keys (counter `keys`) need not look for a key; the others use `keyIn`.
-- NEW_RUN: a new job up to `stalls`. WAITS: captures `made,`, started, and `,priority,stalls,added`. GROUPED_WAITS: the same for a marked
-- job without a priority. HELD: captures ends, made, and the rest. HELD_UNDER: the seq of the claim, of any active job.
local NEW_RUN = '$run{state..stalls state=w timed=0 delay=0 made=0 started=0 priority=0 stalls=0},'
local WAITS = '^$run{state..delay state=w timed=%d *=%d*},(%d*,)(%d+)(,$run{priority..added *=%d*}),'
local GROUPED_WAITS = '^$run{state..delay state=W timed=%d *=%d*},(%d*,)(%d+)(,$run{priority..added priority=0 *=%d*}),'
local HELD_UNDER = '^$run{state..seq state=[aA] seq=(%d*)}'
local HELD = '^$run{state..delay state=a seq=%d* ends=(%d*) timed=%d delay=0},(%d*)(,[%d,]*%z)$'
-- Templates: `added` follows the first one, `made` the others.
local ENTERED_RUN = '$run{state..stalls state=%s timed=0 ord=%s delay=%s made=0 started=0 priority=%s stalls=0},'
local ACTIVE_RUN = '$run{state..delay state=a seq=%s ends=%s timed=%s delay=0},'
local FINISHED_RUN = '$run{state..delay state=%s timed=0 finished=%s delay=0},'
