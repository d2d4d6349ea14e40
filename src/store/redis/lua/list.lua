-- use: clock tools records
-- Lists the jobs of one list that is not the active one. In ascending order, jobs that wait for their lock key and
-- jobs of groups come last.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: list, the suffix of its key (members:<key> for a group); first and last position (negative: from the end, -1 is the last);
--   ascending (1 or 0); most, the jobs to return at most; bytes, the byte budget of the records.
-- Returns the position to continue from (-1: the range has ended), 1 if the budget cut the page, the records (columns: see
-- records.lua) and their size in bytes.
local ascending, parts = ARGV[4] == '1', { ARGV[1] }
if ARGV[1] == 'wait' or ARGV[1] == 'prio' then table.insert(parts, ascending and 2 or 1, 'behind:' .. ARGV[1]) end
local sizes, size = {}, 0
for i = 1, #parts do
  sizes[i] = call('ZCARD', key(parts[i]))
  size = size + sizes[i]
end
local first, last = tonumber(ARGV[2]), tonumber(ARGV[3])
if first < 0 then first = math.max(0, size + first) end
if last < 0 then last = size + last else last = math.min(last, size - 1) end
local upTo = math.min(last, first + ARGV[5] - 1)
if upTo < first then return { -1, 0, records({}) } end
-- A member of `prio` or of a group begins with the 16 digits of its place, so the id begins at 17.
local named, ids, skipped = (ARGV[1] == 'prio' or match(ARGV[1], '^members:')) and 17 or 1, {}, 0
for i = 1, #parts do
  local from, to = math.max(first - skipped, 0), math.min(upTo - skipped, sizes[i] - 1)
  if from <= to then
    local members = call(ascending and 'ZRANGE' or 'ZREVRANGE', key(parts[i]), from, to)
    for j = 1, #members do ids[#ids + 1] = members[j]:sub(named) end
  end
  skipped = skipped + sizes[i]
end
local columns, bytes = records(ids, tonumber(ARGV[6]))
local cut = #columns[1] < #ids
if cut then upTo = first + #columns[1] - 1 end
return { upTo < last and upTo + 1 or -1, cut and 1 or 0, columns, bytes }
