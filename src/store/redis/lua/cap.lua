-- use: clock counters queue
-- Sets the cap of a queue. Workers are woken, because a higher cap makes jobs claimable.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: maxActive, the most jobs that may be active at once; '' removes the cap.
set('cap', ARGV[1] == '' and 0 or ARGV[1] + 1)
offer()
save()
return 1
