-- use: clock tools
-- Forgets the last add of a caller. The caller has its reply and makes no more calls.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: caller.
return call('UNLINK', key('added:' .. ARGV[1]))
