-- use: clock
-- ARGV: a lost connection, the one that took its place, ids of sessions. Those that the lost one vouched for get the new one and, where
-- they were suspected, the time back that they had; a session that is renewed by somebody else by now is left alone.
for i = 3, #ARGV do
  local id = ARGV[i]
  local own = key('s:' .. id)
  if call('ZSCORE', key('sessions'), id) then
    local expires, presence = unpack(call('HMGET', own, 'suspected', 'presence'))
    if not expires then presence = call('HGET', key('presence'), id) end
    if presence == ARGV[1] then
      call('HSET', key('presence'), id, ARGV[2])
      if expires then
        call('ZADD', key('sessions'), 'GT', expires, id)
        call('HDEL', own, 'suspected', 'presence')
        call('SREM', key('suspects'), id)
      end
    end
  end
end
return 1
