-- use: clock tools
-- Reads schedules.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: by what, and its arguments: i, ids · o, the most owing schedules to return · p, first position, last position (-1: the last),
--   ascending (1 or 0).
-- Returns the number of all schedules, Redis' clock in ms, the ids, and their records (see shared/schedule-records.lua; nil if there is none).
local by, ids = ARGV[1], {}
if by == 'i' then
  for i = 2, #ARGV do ids[i - 1] = ARGV[i] end
elseif by == 'o' then
  ids = call('ZRANGEBYSCORE', key('owing'), '-inf', '+inf', 'LIMIT', 0, ARGV[2])
else
  local ascending = ARGV[4] == '1'
  ids = call(ascending and 'ZRANGE' or 'ZREVRANGE', key('scheduleSlots'), ARGV[2], ARGV[3])
end
return { call('ZCARD', key('scheduleSlots')), digits(floor(now)), ids, fetch(key('schedules'), ids) }
