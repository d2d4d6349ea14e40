-- use: clock
-- ARGV: job id, first and last position, 1 for ascending. Answers how many rows there are, and those, oldest first.
local log = key('log:' .. ARGV[1])
local size = call('LLEN', log)
local first, last = tonumber(ARGV[2]), tonumber(ARGV[3])
if first < 0 then first = math.max(0, size + first) end
if last < 0 then last = size + last else last = math.min(last, size - 1) end
if last < first then return { size, {} } end
if ARGV[4] ~= '1' then first, last = size - 1 - last, size - 1 - first end
return { size, call('LRANGE', log, first, last) }
