-- use: clock expiry
-- ARGV: graceMs. Shortens the sessions that are under suspicion already, and answers how many they are and, if nobody asked
-- lately, the connections that vouch for the others: however many workers ask, their connections are looked for twice a second.
local EVERY_MS = 500
local suspects = call('SMEMBERS', key('suspects'))
for i = 1, #suspects do shorten(suspects[i], ceil(now + ARGV[1])) end
local ours = call('EXISTS', key('presence')) == 1 and call('SET', key('probed'), 1, 'NX', 'PX', EVERY_MS)
if not ours then return { #suspects, {} } end
return { #suspects, call('HVALS', key('presence')) }
