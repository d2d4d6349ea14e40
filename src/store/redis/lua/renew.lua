-- use: clock counters queue expiry
-- ARGV: presence or '', then of each session: id, acked, slots or '' where they have not changed. All that a renewal writes,
-- whatever the session holds.
-- Answers of each: 0 when it was ended, else its revocations, each as number, job id, fence, reason with NUL between.
local replies = {}
for at = 2, #ARGV, 3 do
  local id, acked, slots = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local own = key('s:' .. id)
  local duration, ended, revoked, suspected = unpack(call('HMGET', own, 'duration', 'ended', 'revoked', 'suspected'))
  if not duration or ended then
    replies[#replies + 1] = 0
  else
    expireAt(id, ceil(now + duration))
    call('HINCRBY', own, 'renewals', 1)
    -- Whoever renews vouches for the session: its connection is the one to look for.
    if ARGV[1] == '' then call('HDEL', key('presence'), id) else call('HSET', key('presence'), id, ARGV[1]) end
    if suspected then
      call('HDEL', own, 'suspected', 'presence')
      call('SREM', key('suspects'), id)
    end
    if slots ~= '' and call('HGET', key('slots'), id) ~= slots then
      call('HSET', key('slots'), id, slots)
      if queue.cap > 0 then offer() end
    end
    local list = {}
    if revoked ~= '0' then
      local revocations = key('revoked:' .. id)
      call('ZREMRANGEBYSCORE', revocations, '-inf', acked)
      list = call('ZRANGE', revocations, 0, -1)
    end
    replies[#replies + 1] = list
  end
end
save()
return replies
