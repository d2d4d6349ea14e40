-- use: clock tools counters queue groups metrics
-- Changes settings of a queue: its pause, block, cap, rate, metrics and groups. An empty argument leaves a setting as it is.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: paused (1 pauses, 0 resumes; only a change emits an event); blockedMs (0 ends the block, and the current window of the rate
--   limit); maxActive, the most jobs that may be active at once (-1 removes the cap); rateMax and rateMs, the rate (-1 removes it);
--   points, the whole minutes that are kept for metrics (-1 stops counting and forgets the counts); then the limits of all groups:
--   7 `=` if they change, 8 maxActive, 9 and 10 the rate ('' for none); then the settings of one group: 11 `=` and its key, 12 paused
--   (1 or 0), 13 maxActive, 14 and 15 the rate (-1 removes the limit), 16 blockedMs (0 ends its block and its window).
-- Workers are woken, because jobs may be claimable now.
local paused, blockedMs, maxActive, rateMax, rateMs, points = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

-- Changes fields of the second list (see counters.lua). Processes of versions that do not know this list must not touch the queue then.
local function change(fields)
  settings = settings or { $each{settings # = 0} }
  for name, value in pairs(fields) do settings[name] = value end
  set('layout', math.max(queue.layout, 4))
end

if paused and queue.paused ~= paused then
  set('paused', paused)
  tell(1, paused == 1 and 'O' or 'Q')
  if paused == 0 then offer() end
end
if blockedMs ~= '' then
  set('limitedUntil', blockedMs == '0' and 0 or ceil(now + blockedMs))
  if blockedMs == '0' then set('windowEnds', 0) end
  offer()
end
if maxActive ~= '' then
  set('cap', maxActive + 1)
  offer()
end
if rateMax == '-1' then
  if settings then change({ rateMax = 0, rateMs = 0 }) end
  offer()
elseif rateMax ~= '' then
  change({ rateMax = rateMax + 1, rateMs = tonumber(rateMs) })
  offer()
end
if points == '-1' and settings then
  local off = { points = 0 }
  for _, state in ipairs({ 'completed', 'failed' }) do
    for _, field in ipairs({ 'Count', 'Minute', 'Current', 'First' }) do off[state .. field] = 0 end
    call('UNLINK', key('minutes:' .. state))
  end
  change(off)
elseif points ~= '' and points ~= '-1' then
  change({ points = points + 1 })
  openMetrics().trim('completed')
  metrics.trim('failed')
end

local function setGroup(one)
  if ARGV[12] ~= '' then one.paused = ARGV[12] end
  if ARGV[13] ~= '' then one.maxActive = ARGV[13] == '-1' and '' or ARGV[13] end
  if ARGV[14] ~= '' then one.rateMax, one.rateMs = ARGV[14] == '-1' and '' or ARGV[14], ARGV[15] end
  if ARGV[16] ~= '' then one.blockedUntil = ceil(now + ARGV[16]) end
  if ARGV[16] == '0' then one.blockedUntil, one.windowEnds = 0, 0 end
  groups.touch(one)
end

if ARGV[7] == '=' then
  local max = tonumber(ARGV[9])
  openGroups()
  change({ groupActive = (tonumber(ARGV[8]) or -1) + 1, groupMax = max and max + 1 or 0, groupMs = max and tonumber(ARGV[10]) or 0 })
  groups.recheck()
  offer()
end
if ARGV[11] ~= '' then
  setGroup(openGroups().get(ARGV[11]:sub(2)))
  offer()
end
save()
return 1
