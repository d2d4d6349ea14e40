-- use: clock tools records
-- Reads jobs by id.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: bytes, the byte budget of the records, then the job ids.
-- Returns the records of the first jobs that fit the budget (columns: see records.lua), and their size in bytes.
local ids = {}
for i = 2, #ARGV do ids[i - 1] = ARGV[i] end
return { records(ids, tonumber(ARGV[1])) }
