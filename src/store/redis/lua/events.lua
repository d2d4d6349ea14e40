-- use: clock counters queue
-- ARGV: number of the last event that the reader has, or '' to ask where the log ends; most entries to answer; how many events the
-- reader wants. Answers the number of the newest event, that of the first that is not hidden, and the entries from the one with the next
-- event on, as far as a reply goes. They are read a few at a time: what a stream holds cannot be measured before.
if ARGV[1] == '' then return { queue.event, queue.firstEvent, {} } end
local STEP = 10
local first, most = math.max(tonumber(ARGV[1]) + 1, queue.firstEvent), tonumber(ARGV[2])
local from, entries, left, enough = digits(first), {}, REPLY_BYTES, first + tonumber(ARGV[3]) - 1
while left > 0 and #entries < most do
  local part = call('XRANGE', key('events'), from, '+', 'COUNT', math.min(STEP, most - #entries))
  for i = 1, #part do
    left = left - #part[i][2][2]
    if left < 0 and #entries > 0 then break end
    entries[#entries + 1] = part[i]
    if tonumber(match(part[i][1], '^%d+')) >= enough then return { queue.event, queue.firstEvent, entries } end
  end
  if #part < STEP then break end
  from = '(' .. part[#part][1]
end
return { queue.event, queue.firstEvent, entries }
