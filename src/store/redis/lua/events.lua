-- use: clock counters queue
-- ARGV: number of the last event that the reader has, or '' to ask where the log ends; most entries to answer. Answers the number
-- of the newest event, that of the first that is not hidden, and the entries from the one with the next event on, as far as a reply
-- goes. They are read a few at a time: what a stream holds cannot be measured before.
if ARGV[1] == '' then return { queue.event, queue.firstEvent, {} } end
local STEP = 10
local from, entries, left = digits(math.max(tonumber(ARGV[1]) + 1, queue.firstEvent)), {}, REPLY_BYTES
while left > 0 and #entries < tonumber(ARGV[2]) do
  local part = call('XRANGE', key('events'), from, '+', 'COUNT', STEP)
  for i = 1, #part do
    left = left - #part[i][2][2]
    if left < 0 and #entries > 0 then break end
    entries[#entries + 1] = part[i]
  end
  if #part < STEP then break end
  from = '(' .. part[#part][1]
end
return { queue.event, queue.firstEvent, entries }
