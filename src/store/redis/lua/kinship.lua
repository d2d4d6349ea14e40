-- use: clock tools
-- Reads what an add of a family has to know of other queues.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: job ids.
-- Returns for each job 0 if it does not exist, else its marks and extras ('' for a plain job).
local texts, extras, found = fetch(key('run'), ARGV), fetch(key('extra'), ARGV), {}
for i = 1, #ARGV do found[i] = texts[i] and (extras[i] or '') or 0 end
return found
