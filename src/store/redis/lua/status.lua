-- use: clock queue
-- Answers paused, limitedMs, and the lengths of the lists: waiting, prioritized, delayed, active, completed, failed.
local full = queue.windowEnds > now and queue.windowUsed >= queue.windowMax
local limited = ceil(math.max(0, queue.limitedUntil - now, full and queue.windowEnds - now or 0))
local reply = { queue.paused, limited }
for i, list in ipairs({ 'wait', 'prio', 'delayed', '', 'completed', 'failed' }) do
  reply[i + 2] = list == '' and queue.active or call('ZCARD', key(list))
end
return reply
