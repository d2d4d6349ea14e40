-- use: clock suspects
-- Starts a suspicion check.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: none.
-- Returns the number of open sessions, the ms until the first suspected session ends (-1: none is suspected), and the connections that
-- vouch for unsuspected sessions, for the caller to check. That list is empty if another call got it within EVERY_MS: so the
-- connections of a queue are checked at most twice a second, however many workers probe.
local EVERY_MS = 500
local sessions, due = call('ZCARD', key('sessions')), firstEnd()
local ours = call('EXISTS', key('presence')) == 1 and call('SET', key('probed'), 1, 'NX', 'PX', EVERY_MS)
if not ours then return { sessions, due, {} } end
return { sessions, due, call('HVALS', key('presence')) }
