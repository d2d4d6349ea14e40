-- use: clock records
-- ARGV: bytes that the records may have, ids. Answers the records of the first that fit, and how many bytes they have.
local ids = {}
for i = 2, #ARGV do ids[i - 1] = ARGV[i] end
return { records(ids, tonumber(ARGV[1])) }
