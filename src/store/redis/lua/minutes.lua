-- use: clock tools
-- Reads the whole minutes of metrics in which jobs finished.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: state (completed or failed), first minute, last minute.
-- Returns minute,jobs of each minute in which a job finished.
return call('ZRANGEBYSCORE', key('minutes:' .. ARGV[1]), ARGV[2], ARGV[3])
