-- use: clock tools
-- Lists the open sessions by expiry, one page per call.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: position to start from, the sessions to return at most.
-- Returns for each session: id, expiresInMs, host, pid, name, durationMs, since, renewals, suspected (1 or 0), number of job locks,
-- instance, slots.
local replies = {}
local open = call('ZRANGE', key('sessions'), ARGV[1], ARGV[1] + ARGV[2] - 1, 'WITHSCORES')
for i = 1, #open, 2 do
  local id = open[i]
  local host, pid, name, duration, since, renewals, suspected, instance =
    unpack(call('HMGET', key('s:' .. id), 'host', 'pid', 'name', 'duration', 'since', 'renewals', 'suspected', 'instance'))
  local locks = call('ZCARD', key('bound:' .. id)) + call('ZCARD', key('ending:' .. id))
  local expiresInMs = floor(open[i + 1] - now)
  local slots = call('HGET', key('slots'), id)
  replies[#replies + 1] =
    { id, expiresInMs, host, pid, name, duration, since, renewals, suspected and 1 or 0, locks, instance, slots }
end
return replies
