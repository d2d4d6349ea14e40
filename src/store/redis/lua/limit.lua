-- use: clock counters queue
-- Blocks claims of a queue for a time, or lifts the block.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: durationMs; 0 lifts the block, and also ends the current window of the rate limit.
if ARGV[1] == '0' then
  set('limitedUntil', 0)
  set('windowEnds', 0)
else
  set('limitedUntil', ceil(now + ARGV[1]))
end
offer()
save()
return 1
