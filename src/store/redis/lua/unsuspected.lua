-- use: clock
-- ARGV: ids of sessions. Answers of each 1 when it is open, has not expired and nobody suspects it.
local replies = {}
for i = 1, #ARGV do
  local expires, ended, suspected = unpack(call('HMGET', key('s:' .. ARGV[i]), 'expires', 'ended', 'suspected'))
  replies[i] = expires and not ended and not suspected and tonumber(expires) > now and 1 or 0
end
return replies
