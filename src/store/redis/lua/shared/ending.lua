-- Ending sessions. An ended session neither renews nor claims; what it holds is handed back in bites, by whoever closes it or by any
-- sweep, and `reaped` lists those that still have locks to hand back.
local CALL_REMEMBERED_MS = 15 * 60 * 1000

-- `charged` 0: what it holds goes back without counting a stall, whoever hands it back. EXITED: it counts, and its owner said so itself.
local EXITED = '2'
local function endSession(id, charged)
  local session = openSession(id)
  call('ZREM', key('sessions'), id)
  if not session then return end
  sessions[id] = false
  call('HDEL', key('presence'), id)
  call('SREM', key('suspects'), id)
  call('HDEL', key('slots'), id)
  call('HSET', key('s:' .. id), 'ended', charged)
  call('ZADD', key('reaped'), session.expires, id)
  -- The last call of each lane may still be repeated.
  for lane, last in pairs(session.calls) do
    if last.callSeq then
      call('SET', key('call' .. lane .. ':' .. id), last.callSeq .. ',' .. last.results, 'PX', CALL_REMEMBERED_MS)
    end
  end
  -- Under a cap, others may have its share.
  if queue.cap > 0 then offer() end
end
