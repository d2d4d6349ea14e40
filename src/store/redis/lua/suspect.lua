-- use: clock expiry suspects
-- ARGV: connections that are gone. Leaves the sessions that they vouch for their graces, never lengthens one; answers when the first
-- of all that are suspected ends.
local OLD_GRACE_MS = 2000
local gone = {}
for i = 1, #ARGV do gone[ARGV[i]] = true end
local entries = call('HGETALL', key('presence'))
for i = 1, #entries, 2 do
  local id, presence = entries[i], entries[i + 1]
  if gone[presence] then
    local own = key('s:' .. id)
    local expires, grace = unpack(call('HMGET', own, 'expires', 'grace'))
    -- Both are kept for an owner that has only lost its connection.
    call('HSET', own, 'suspected', expires, 'presence', presence)
    call('HDEL', key('presence'), id)
    call('SADD', key('suspects'), id)
    shorten(id, ceil(now + (grace or OLD_GRACE_MS)))
  end
end
return firstEnd()
