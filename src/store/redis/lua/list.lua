-- use: clock records
-- ARGV: key of the list, first and last position (-1: the last), 1 for ascending, most jobs to answer.
-- Answers the position to go on from (-1: that was all), and the records.
local list, ascending = key(ARGV[1]), ARGV[4] == '1'
local size = call('ZCARD', list)
local first, last = tonumber(ARGV[2]), tonumber(ARGV[3])
if first < 0 then first = math.max(0, size + first) end
if last < 0 then last = size + last else last = math.min(last, size - 1) end
local upTo = math.min(last, first + ARGV[5] - 1)
if upTo < first then return { -1, records({}) } end
local ids = call(ascending and 'ZRANGE' or 'ZREVRANGE', list, first, upTo)
-- A member of `prio` begins with its place.
if ARGV[1] == 'prio' then
  for i = 1, #ids do ids[i] = ids[i]:sub(17) end
end
return { upTo < last and upTo + 1 or -1, records(ids) }
