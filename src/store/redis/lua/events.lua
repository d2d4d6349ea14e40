-- Events: reading and trimming them.

-- name: events
-- use: clock tools counters queue
-- Reads the event log, up to the byte budget of a reply.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: after, the number of the last event that the reader has ('': return only where the log ends); most, the entries to return at
--   most; wanted, the number of events that the reader wants.
-- Returns a list of four:
--   newest         the number of the newest event
--   firstVisible   the number of the first visible event
--   entries        stream entries, from the one that holds the next event on
--   values         the large values stored beside these entries
-- The script reads STEP entries at a time, because Redis cannot measure an entry of a stream without reading it.

if ARGV[1] == '' then return { queue.event, queue.firstEvent, {}, {} } end
local STEP = 10
local first, most = math.max(tonumber(ARGV[1]) + 1, queue.firstEvent), tonumber(ARGV[2])
local from, enough, left = digits(first), first + tonumber(ARGV[3]) - 1, REPLY_BYTES
local entries, values = {}, {}

-- Adds the entry and its large values, unless they exceed the byte budget; the first entry always goes in. Returns whether to continue.
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
