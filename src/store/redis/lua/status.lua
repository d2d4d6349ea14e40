-- use: clock counters queue
-- Reads the state of a queue.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: none.
-- Returns paused, limitedMs, the lengths of the lists (waiting, prioritized, delayed, active, completed, failed), and `cap` (see
-- counters.lua).
local full = queue.windowEnds > now and queue.windowUsed >= queue.windowMax
local limited = ceil(math.max(0, queue.limitedUntil - now, full and queue.windowEnds - now or 0))
local reply = { queue.paused, limited }
for i, list in ipairs({ 'wait', 'prio', 'delayed', '', 'completed', 'failed' }) do
  reply[i + 2] = list == '' and queue.active or call('ZCARD', key(list))
end
for i, place in ipairs({ 'wait', 'prio' }) do reply[i + 2] = reply[i + 2] + call('ZCARD', key('behind:' .. place)) end
reply[#reply + 1] = queue.cap
return reply
