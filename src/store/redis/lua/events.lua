-- use: clock counters queue
-- ARGV: number of the last event that the reader has, or '' to ask where the log ends; most entries to answer; how many events the
-- reader wants. Answers the number of the newest event, that of the first that is not hidden, the entries from the one with the next
-- event on, as far as a reply goes, and the values that lie beside these. Entries are read a few at a time: what a stream holds cannot
-- be measured before.
if ARGV[1] == '' then return { queue.event, queue.firstEvent, {}, {} } end
local STEP = 10
local first, most = math.max(tonumber(ARGV[1]) + 1, queue.firstEvent), tonumber(ARGV[2])
local from, enough, left = digits(first), first + tonumber(ARGV[3]) - 1, REPLY_BYTES
local entries, values = {}, {}

-- Whether the reply has room for the entry and the values beside it, or is empty.
local function take(entry)
  local last, body = match(entry[1], '^%d+'), entry[2][2]
  local beside = string.find(body, LARGE_VALUE, 1, true) and call('XRANGE', key('event-values'), last, last) or {}
  left = left - #body
  for i = 1, #beside do left = left - #beside[i][2][2] end
  if left < 0 and #entries > 0 then return false end
  entries[#entries + 1] = entry
  for i = 1, #beside do values[#values + 1] = beside[i] end
  return left > 0 and #entries < most and tonumber(last) < enough
end

local more = true
while more do
  local part = call('XRANGE', key('events'), from, '+', 'COUNT', STEP)
  for i = 1, #part do
    more = more and take(part[i])
  end
  if #part < STEP then break end
  from = '(' .. part[#part][1]
end
return { queue.event, queue.firstEvent, entries, values }
