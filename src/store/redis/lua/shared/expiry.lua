-- Sets the expiry of a session, in both places: in the index `sessions`, where sweeps find it, and in the session, where claims read it.
local function expireAt(id, ms)
  call('ZADD', key('sessions'), ms, id)
  call('HSET', key('s:' .. id), 'expires', ms)
end

local function clearSuspicion(id)
  call('HDEL', key('s:' .. id), 'suspected', 'presence')
  call('SREM', key('suspects'), id)
end

local function shorten(id, ms)
  if tonumber(call('HGET', key('s:' .. id), 'expires')) > ms then expireAt(id, ms) end
end
