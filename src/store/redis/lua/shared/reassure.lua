-- Clears the suspicion of a session that is granted a lock: the request shows that its owner lives. Otherwise the owner would trust a
-- lock that ends early. If the connection is really gone, the next suspicion check suspects the session again, with a new grace period.
local function reassure(id)
  local session = openSession(id)
  if not session.suspected then return end
  session.expires = tonumber(session.suspected)
  expireAt(id, session.suspected)
  call('HSET', key('presence'), id, call('HGET', key('s:' .. id), 'presence'))
  clearSuspicion(id)
  session.suspected = false
end
