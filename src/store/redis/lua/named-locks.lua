-- use: clock tools counters queue jobs locks names
-- Reads named locks and their owners.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: names.
-- Returns for each lock: token, fence, session, since, endsInMs, number of lock waiters, and host, pid, name, instance of the owner;
-- 0 if the lock has no owner.
local replies = {}
for i = 1, #ARGV do
  local holder = holdOf(ARGV[i])
  replies[i] = 0
  if holder then
    local expires, ended, host, pid, name, instance =
      unpack(call('HMGET', key('s:' .. holder.session), 'expires', 'ended', 'host', 'pid', 'name', 'instance'))
    expires = tonumber(expires) or 0
    -- If the session has ended, the lock is dead, even if its expiry lies ahead.
    local endsInMs = floor((ended and math.min(expires, now) or expires) - now)
    local waiting = countLine(ARGV[i])
    replies[i] = { holder.token, holder.fence, holder.session, holder.since, endsInMs, waiting, host, pid, name, instance }
  end
end
return replies
