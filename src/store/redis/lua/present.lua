-- use: clock expiry
-- ARGV: a lost connection, the one that took its place, ids of sessions. Those that the lost one vouched for get the new one and,
-- where they were suspected, the time back that they had; a session that is renewed by somebody else by now is left alone.
for i = 3, #ARGV do
  local id = ARGV[i]
  local own = key('s:' .. id)
  local ended, expires, presence = unpack(call('HMGET', own, 'ended', 'suspected', 'presence'))
  if not expires then presence = call('HGET', key('presence'), id) end
  if not ended and presence == ARGV[1] then
    call('HSET', key('presence'), id, ARGV[2])
    if expires then
      expireAt(id, expires)
      call('HDEL', own, 'suspected', 'presence')
      call('SREM', key('suspects'), id)
    end
  end
end
return 1
