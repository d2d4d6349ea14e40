-- use: clock tools
-- Reads which queues a queue has messages for, and which queues may have messages for it. Without waiting parents there are none of these.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: most, the queues of each kind to return.
-- Returns the receiving queues, and the queues that children of waiting parents are in.
if call('EXISTS', key('waiting-children')) == 0 then call('UNLINK', key('kin')) end
return { call('ZRANGE', key('outbox'), 0, ARGV[1] - 1), call('SRANDMEMBER', key('kin'), ARGV[1]) }
