-- Sweeping: what a dead session leaves behind.

-- name: sweep
-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks marking families entries schedules metrics locks leave ending retention failing hand-back sessions names
-- Sweeps: ends expired sessions, and takes dead locks from their owners. Idempotent; any worker may call it.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: limit, the sessions to end and the locks to hand back at most (never more than 100 each).
-- Returns a list of four, or of six in a queue with families:
--   stalled   ids of jobs that count a stall and wait again
--   failed    ids of jobs that failed, because they stalled too often or were cancelled
--   more      1 if more sessions or locks are dead, else 0
--   lostBy    LostBy (JSON) of the stalled jobs, then of the failed jobs
--   sentTo    queues that the script has sent messages to
--   checks    1 if the caller is to check parents that have waited for long (`overdue` in families.lua), else 0

local limit, CHECK_EVERY_MS = math.min(tonumber(ARGV[1]), 100), 10000

local expired = call('ZRANGEBYSCORE', key('sessions'), '-inf', now, 'LIMIT', 0, limit)
for i = 1, #expired do endSession(expired[i], 1) end

if queue.level > 1 then openEntries().sweep(limit) end
if queue.level > 2 then openSchedules().check(limit) end
if queue.level > 4 then openGroups().sweep(limit) end

local dead, left = {}, limit
local reaped = call('ZRANGE', key('reaped'), 0, limit - 1)
for i = 1, #reaped do
  local id = reaped[i]
  if left == 0 then break end
  -- Hand back the newest locks first. Later calls put older jobs in front of them, so the oldest job ends up first.
  local bound = key('bound:' .. id)
  local jobs = heldIn(bound, call('ZREVRANGE', bound, 0, left - 1))
  for j = 1, #jobs do dead[#dead + 1] = jobs[j] end
  left = left - #jobs
  left = left - freeNames(id, left)
  if call('ZCARD', bound) == #jobs and call('EXISTS', key('held:' .. id), key('lined:' .. id)) == 0 then
    -- All locks bound to this session are released. Locks with their own expiry are swept through `ends`.
    call('ZREM', key('reaped'), id)
    if #jobs == 0 then tidy(id) end
  end
end

-- Locks whose own end has passed. If the lock was extended (timed 0) and its session is open, the lock is bound to the session again.
if left > 0 then
  local jobs = heldIn(key('ends'), call('ZRANGEBYSCORE', key('ends'), '-inf', now, 'LIMIT', 0, left))
  for i = 1, #jobs do
    local job = jobs[i]
    local session = sessionOf(job.token)
    if job.timed == '0' and openSession(session) then
      call('ZREM', key('ends'), job.id)
      call('ZREM', key('ending:' .. session), job.id)
      call('ZADD', key('bound:' .. session), fenceOf(job.token), job.id)
      job.ends = ''
      store({ job })
    else
      dead[#dead + 1] = job
    end
  end
end

local stalled, failed, lostBy = handBack(dead)
flushPlaces()
tellLosses()
save()
local ended = call('ZCOUNT', key('sessions'), '-inf', now) + call('ZCOUNT', key('ends'), '-inf', now)
local more = ended + call('ZCARD', key('reaped'))
if queue.level < 6 then return { stalled, failed, more > 0 and 1 or 0, lostBy } end
local checks = call('EXISTS', key('waiting-children')) == 1 and call('SET', key('checking'), 1, 'NX', 'PX', CHECK_EVERY_MS)
return { stalled, failed, more > 0 and 1 or 0, lostBy, receivers() or {}, checks and 1 or 0 }
