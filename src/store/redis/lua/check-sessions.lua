-- use: clock tools
-- Checks sessions for suspicion.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: ids of sessions.
-- Returns for each session 1 if it is open, has not expired and is not suspected, else 0.
local replies = {}
for i = 1, #ARGV do
  local expires, ended, suspected = unpack(call('HMGET', key('s:' .. ARGV[i]), 'expires', 'ended', 'suspected'))
  replies[i] = expires and not ended and not suspected and tonumber(expires) > now and 1 or 0
end
return replies
