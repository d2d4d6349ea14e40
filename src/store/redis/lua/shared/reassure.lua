-- Whoever is granted something lives. A suspicion ends with it, or its holder would trust in a lock that ends before its time; should its
-- connection be gone indeed, the next look suspects it again, and leaves it its grace from then on.
local function reassure(id)
  local session = openSession(id)
  if not session.suspected then return end
  local own = key('s:' .. id)
  session.expires = tonumber(session.suspected)
  expireAt(id, session.suspected)
  call('HSET', key('presence'), id, call('HGET', own, 'presence'))
  call('HDEL', own, 'suspected', 'presence')
  call('SREM', key('suspects'), id)
  session.suspected = false
end
