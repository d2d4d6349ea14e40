-- use: clock tools expiry
-- Moves sessions from a lost connection to the new connection of the same process (crash hint: see presence.ts).
-- KEYS: tag, the hash tag of the queue.
-- ARGV: before, the lost connection; presence, the new connection; then ids of sessions.
-- If a session was suspected meanwhile, it gets its former expiry back.
-- If another connection has renewed a session since, the script leaves that session alone.
for i = 3, #ARGV do
  local id = ARGV[i]
  local own = key('s:' .. id)
  local ended, expires, presence = unpack(call('HMGET', own, 'ended', 'suspected', 'presence'))
  if not expires then presence = call('HGET', key('presence'), id) end
  if not ended and presence == ARGV[1] then
    call('HSET', key('presence'), id, ARGV[2])
    if expires then
      expireAt(id, expires)
      clearSuspicion(id)
    end
  end
end
return 1
