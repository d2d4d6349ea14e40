-- use: clock tools expiry suspects
-- Suspects the sessions of lost connections: shortens each to its grace period. It never lengthens a session, and never ends one.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: connections that are gone.
-- Returns the ms until the first of all suspected sessions ends (-1: none is suspected).
local OLD_GRACE_MS = 2000
local gone = {}
for i = 1, #ARGV do gone[ARGV[i]] = true end
local entries = call('HGETALL', key('presence'))
for i = 1, #entries, 2 do
  local id, presence = entries[i], entries[i + 1]
  if gone[presence] then
    local own = key('s:' .. id)
    local expires, grace = unpack(call('HMGET', own, 'expires', 'grace'))
    -- Store the former expiry and connection: an owner that has only lost its connection gets both back.
    call('HSET', own, 'suspected', expires, 'presence', presence)
    call('HDEL', key('presence'), id)
    call('SADD', key('suspects'), id)
    shorten(id, ceil(now + (grace or OLD_GRACE_MS)))
  end
end
return firstEnd()
