-- use: clock tools
-- Reads which owner lost each job.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: job ids.
-- Returns LostBy (JSON) of each job, nil if there is none.
return fetch(key('lost'), ARGV)
