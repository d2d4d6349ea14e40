-- When a session ends: in the index by which sweeps find it, and with the session, where claims look.
local function expireAt(id, ms)
  call('ZADD', key('sessions'), ms, id)
  call('HSET', key('s:' .. id), 'expires', ms)
end

local function shorten(id, ms)
  if tonumber(call('HGET', key('s:' .. id), 'expires')) > ms then expireAt(id, ms) end
end
