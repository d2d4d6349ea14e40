-- use: clock tools run-texts counters queue jobs marks entries
-- Deletes entries of deduplication that count, with their drafts. A sweep deletes the others.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: owner ('': any; else `=` and the id of the job that must own an entry), then deduplication ids.
-- Returns how many of the deleted entries counted.
local deleted = 0
for i = 2, #ARGV do
  local entry = openEntries().counting(ARGV[i])
  if entry and (ARGV[1] == '' or ARGV[1] == '=' .. entry.owner) then
    entries.delete({ entry.id })
    deleted = deleted + 1
  end
end
return deleted
