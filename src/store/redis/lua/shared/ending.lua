-- Ends sessions. An ended session neither renews nor claims. close-session.lua or any sweep hands back its locks in batches. `reaped`
-- lists the ended sessions that still have locks to hand back.
local CALL_REMEMBERED_MS = 15 * 60 * 1000

-- how: 0: the locks are handed back and do not count as stalls; 1: they count, a sweep or a new owner found the session dead;
-- EXITED: they count, and the session owner itself reported its exit.
local EXITED = '2'
local function endSession(id, how)
  local session = openSession(id)
  call('ZREM', key('sessions'), id)
  if not session then return end
  sessions[id] = false
  call('HDEL', key('presence'), id)
  call('SREM', key('suspects'), id)
  call('HDEL', key('slots'), id)
  call('HSET', key('s:' .. id), 'ended', how)
  call('ZADD', key('reaped'), session.expires, id)
  -- Keep the results of the last settle of each lane: the caller may still repeat that call.
  for lane, last in pairs(session.calls) do
    if last.callSeq then
      call('SET', key('call' .. lane .. ':' .. id), last.callSeq .. ',' .. last.results, 'PX', CALL_REMEMBERED_MS)
    end
  end
  -- Under a cap, other sessions may take the share of this one: wake them.
  if queue.cap > 0 then offer() end
end
