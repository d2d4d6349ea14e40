-- use: clock tools run-texts counters queue jobs marks entries
-- Reads the state of a queue.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: state of metrics (completed, failed or ''), number of priorities, the priorities, then deduplication ids.
-- Returns a list of four:
--   numbers      paused, the lengths of the lists (waiting, prioritized, delayed, active, completed, failed), `cap` (see
--                counters.lua), blockedMs, used and endsInMs of the window (0 and 0 if none is open), rateMax and rateMs (see counters.lua),
--                the length of waiting-children
--   owners       for each deduplication id the owner of its entry, 0 if no entry counts
--   priorities   the waiting jobs of each priority
--   metrics      count, minute, current and first of the state (see minutes.lua); empty if the queue does not count
local state, asked = ARGV[1], tonumber(ARGV[2])
local windowMs = math.max(0, queue.windowEnds - now)
local blockedMs = math.max(0, queue.limitedUntil - now)
local numbers = { queue.paused }
for i, list in ipairs({ 'wait', 'prio', 'delayed', '', 'completed', 'failed' }) do
  numbers[i + 1] = list == '' and queue.active or call('ZCARD', key(list))
end
for i, place in ipairs({ 'wait', 'prio' }) do numbers[i + 1] = numbers[i + 1] + call('ZCARD', key('behind:' .. place)) end
for _, number in ipairs({
  queue.cap, ceil(blockedMs), windowMs > 0 and queue.windowUsed or 0, ceil(windowMs), settings and settings.rateMax or 0,
  settings and settings.rateMs or 0,
}) do
  numbers[#numbers + 1] = number
end
numbers[#numbers + 1] = queue.layout > 5 and call('ZCARD', key('waiting-children')) or 0

local priorities, owners, metrics = {}, {}, {}
for i = 1, asked do
  local priority = ARGV[2 + i]
  priorities[i] = priority == '0' and numbers[2]
    or call('ZCOUNT', key('prio'), priority, priority) + call('ZCOUNT', key('behind:prio'), priority, priority)
end
for i = 3 + asked, #ARGV do
  local entry = openEntries().counting(ARGV[i])
  owners[#owners + 1] = entry and entry.owner or 0
end
if state ~= '' and settings and settings.points > 0 then
  for i, field in ipairs({ 'Count', 'Minute', 'Current', 'First' }) do metrics[i] = settings[state .. field] end
end
return { numbers, owners, priorities, metrics }
