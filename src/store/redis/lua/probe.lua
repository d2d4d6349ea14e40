-- use: clock
-- ARGV: graceMs. Shortens the sessions that are under suspicion already, and answers how many they are and, if nobody asked lately, the
-- connections that vouch for the others: however many workers ask, their connections are looked for twice a second.
local EVERY_MS = 500
local suspects = call('SMEMBERS', key('suspects'))
for i = 1, #suspects do call('ZADD', key('sessions'), 'XX', 'LT', ceil(now + ARGV[1]), suspects[i]) end
local last = tonumber(call('HGET', key('meta'), 'probedAt')) or 0
if last <= now and now < last + EVERY_MS then return { #suspects, {} } end
if call('EXISTS', key('presence')) == 0 then return { #suspects, {} } end
call('HSET', key('meta'), 'probedAt', floor(now))
return { #suspects, call('HVALS', key('presence')) }
