-- use: clock tools
-- Reads log rows of a job.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: job id, first and last position (negative: from the end, -1 is the last), ascending (1 or 0).
-- Returns the number of all rows, and the rows of the range in the requested order. Only as many rows are returned as fit into a
-- reply, at least one.
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
