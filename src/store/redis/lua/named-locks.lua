-- use: clock counters queue jobs lanes locks names
-- ARGV: names. Answers of each: token, fence, session, since, endsInMs, how many wait, host, pid, name and instance of the owner;
-- 0 when nobody holds it.
local replies = {}
for i = 1, #ARGV do
  local holder = holdOf(ARGV[i])
  replies[i] = 0
  if holder then
    local expires, ended, host, pid, name, instance =
      unpack(call('HMGET', key('s:' .. holder.session), 'expires', 'ended', 'host', 'pid', 'name', 'instance'))
    expires = tonumber(expires) or 0
    -- With an ended session the lock is dead, whatever time was left to it.
    local endsInMs = floor((ended and math.min(expires, now) or expires) - now)
    local waiting = countLine(ARGV[i])
    replies[i] = { holder.token, holder.fence, holder.session, holder.since, endsInMs, waiting, host, pid, name, instance }
  end
end
return replies
