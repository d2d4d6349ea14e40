-- use: clock counters queue
-- ARGV: number of the last event that the reader has, or '' to ask where the log ends; most entries to answer. Answers the number
-- of the newest event, that of the first that is not hidden, and the entries from the one with the next event on.
if ARGV[1] == '' then return { queue.event, queue.firstEvent, {} } end
local from = math.max(tonumber(ARGV[1]) + 1, queue.firstEvent)
return { queue.event, queue.firstEvent, call('XRANGE', key('events'), digits(from), '+', 'COUNT', ARGV[2]) }
