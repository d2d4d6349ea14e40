-- use: clock expiry
-- ARGV: graceMs, connections that are gone. Shortens the sessions that they vouch for, never lengthens one; answers how many are
-- suspected.
local gone = {}
for i = 2, #ARGV do gone[ARGV[i]] = true end
local entries = call('HGETALL', key('presence'))
for i = 1, #entries, 2 do
  local id, presence = entries[i], entries[i + 1]
  if gone[presence] then
    local own = key('s:' .. id)
    -- Both are kept for an owner that has only lost its connection.
    call('HSET', own, 'suspected', call('HGET', own, 'expires'), 'presence', presence)
    call('HDEL', key('presence'), id)
    call('SADD', key('suspects'), id)
    shorten(id, ceil(now + ARGV[1]))
  end
end
return call('SCARD', key('suspects'))
