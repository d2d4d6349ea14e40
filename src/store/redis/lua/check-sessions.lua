-- use: clock tools
-- Checks sessions for suspicion, and for notices that their owners have not processed.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: ids of sessions.
-- Returns for each session the sum of 1 if it is open, has not expired and is not suspected, and 2 if it has a notice.
local replies = {}
for i = 1, #ARGV do
  local expires, ended, suspected, noticed, acked =
    unpack(call('HMGET', key('s:' .. ARGV[i]), 'expires', 'ended', 'suspected', 'revoked', 'acked'))
  replies[i] = expires and not ended and not suspected and tonumber(expires) > now and 1 or 0
  if tonumber(noticed or 0) > tonumber(acked or 0) then replies[i] = replies[i] + 2 end
end
return replies
