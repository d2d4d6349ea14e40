-- use: clock tools records active-locks
-- Lists active jobs by fence, one page per call.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: skip, positions to skip; after, the fence to continue after ('': start at the beginning of the list); ascending (1 or 0);
--   most, the jobs to return at most; bytes, the byte budget of the records.
-- Returns how many positions it skipped, the fence to continue after ('': the list has ended), 1 if the budget cut the page,
-- the records (columns: see records.lua) and their size in bytes.
local skip, most = tonumber(ARGV[1]), tonumber(ARGV[4])
local found, more = locksAfter(ARGV[2], ARGV[3] == '1')
local skipped, ids, last = 0, {}, nil
for i = 1, #found do
  local lock = found[i]
  if #ids == most then
    more = true
    break
  end
  if skipped < skip then skipped = skipped + 1 else ids[#ids + 1] = lock.id end
  last = lock
end
local columns, bytes = records(ids, tonumber(ARGV[5]))
return { skipped, more and last and digits(last.fence) or '', #columns[1] < #ids and 1 or 0, columns, bytes }
