-- use: clock
-- ARGV: job id, first and last position, 1 for ascending. Answers how many rows there are, and those of the range that fit into a
-- reply (one at least), in the order that was asked for.
local log = key('log:' .. ARGV[1])
local size = call('LLEN', log)
local first, last = tonumber(ARGV[2]), tonumber(ARGV[3])
if first < 0 then first = math.max(0, size + first) end
if last < 0 then last = size + last else last = math.min(last, size - 1) end
if last < first then return { size, {} } end
local STEP, rows, left = 20, {}, REPLY_BYTES
while first <= last do
  local upTo, part = math.min(last, first + STEP - 1), nil
  if ARGV[4] == '1' then part = call('LRANGE', log, first, upTo) else part = call('LRANGE', log, -1 - upTo, -1 - first) end
  for i = 1, #part do
    local row = part[ARGV[4] == '1' and i or #part + 1 - i]
    left = left - #row
    if left < 0 and #rows > 0 then return { size, rows } end
    rows[#rows + 1] = row
  end
  first = upTo + 1
end
return { size, rows }
