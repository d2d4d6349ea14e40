-- use: clock tools suspects
-- Starts a suspicion check.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: none.
-- Returns the number of open sessions, the ms until the first suspected session ends (-1: none is suspected), and the connections that
-- vouch for unsuspected sessions, for the caller to check. That list is empty if another call got it within EVERY_MS: so the
-- connections of a queue are checked at most twice a second, however many workers probe. The next item is 1 if a schedule is owing or
-- messages of the queue wait, else 0. The last item lists queues that children of waiting parents are in. Both are left out if not needed.
-- KIN_ASKED: the queues that one probe asks for messages, at most.
local EVERY_MS, KIN_ASKED = 500, 20
local sessions, due = call('ZCARD', key('sessions')), firstEnd()
-- EXISTS counts a key as often as it is named, so one command asks for all.
local owing, outbox, kin = key('owing'), key('outbox'), key('kin')
local there = call('EXISTS', key('presence'), owing, owing, outbox, outbox, kin, kin, kin, kin, kin, kin)
local ours = there % 2 == 1 and call('SET', key('probed'), 1, 'NX', 'PX', EVERY_MS)
local reply = { sessions, due, ours and call('HVALS', key('presence')) or {}, nil, nil }
if there > 1 then reply[4] = there % 6 > 1 and 1 or 0 end
if there > 5 then reply[5] = call('SRANDMEMBER', kin, KIN_ASKED) end
return reply
