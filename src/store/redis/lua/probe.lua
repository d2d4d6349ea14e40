-- use: clock tools suspects
-- Starts a suspicion check.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: none.
-- Returns the number of open sessions, the ms until the first suspected session ends (-1: none is suspected), and the connections that
-- vouch for unsuspected sessions, for the caller to check. That list is empty if another call got it within EVERY_MS: so the
-- connections of a queue are checked at most twice a second, however many workers probe. The last item is 1 if a schedule is owing, and
-- left out otherwise.
local EVERY_MS = 500
local sessions, due = call('ZCARD', key('sessions')), firstEnd()
-- EXISTS counts a key as often as it is named, so one command asks for both.
local there = call('EXISTS', key('presence'), key('owing'), key('owing'))
local ours = there % 2 == 1 and call('SET', key('probed'), 1, 'NX', 'PX', EVERY_MS)
return { sessions, due, ours and call('HVALS', key('presence')) or {}, there > 1 and 1 or nil }
