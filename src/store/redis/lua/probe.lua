-- use: clock suspects
-- Answers how many sessions are open, when the first suspected one ends (-1: there is none) and, if nobody asked lately, the connections
-- that vouch for the others: however many workers ask, their connections are looked for twice a second.
local EVERY_MS = 500
local sessions, due = call('ZCARD', key('sessions')), firstEnd()
local ours = call('EXISTS', key('presence')) == 1 and call('SET', key('probed'), 1, 'NX', 'PX', EVERY_MS)
if not ours then return { sessions, due, {} } end
return { sessions, due, call('HVALS', key('presence')) }
