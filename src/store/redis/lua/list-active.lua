-- use: clock tools records
-- Lists active jobs by fence, one page per call. The locks are sorted by fence within each session; this script merges all sessions.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: skip, positions to skip; after, the fence to continue after ('': start at the beginning of the list); ascending (1 or 0);
--   most, the jobs to return at most; bytes, the byte budget of the records.
-- Returns how many positions it skipped, the fence to continue after ('': the list has ended), 1 if the budget cut the page,
-- the records (columns: see records.lua) and their size in bytes.
-- A call reads about LOOKED_AT locks, however many exist.
local LOOKED_AT = 1000
local skip, after, ascending, most = tonumber(ARGV[1]), ARGV[2], ARGV[3] == '1', tonumber(ARGV[4])
local sets = {}
for _, session in ipairs(call('SMEMBERS', key('holders'))) do
  sets[#sets + 1] = key('bound:' .. session)
  sets[#sets + 1] = key('ending:' .. session)
end

local function comesBefore(a, b)
  if ascending then return a.fence < b.fence end
  return a.fence > b.fence
end

local command, from, to = 'ZRANGEBYSCORE', '-inf', '+inf'
if not ascending then command, from, to = 'ZREVRANGEBYSCORE', '+inf', '-inf' end
if after ~= '' then from = '(' .. after end
local each = ceil(LOOKED_AT / math.max(1, #sets)) + 1
-- horizon: the earliest last lock that was read from a set with more locks. The unread locks of that set may come before locks of
-- other sets behind the horizon. So this call returns nothing behind the horizon; the next call does.
local found, horizon = {}, nil
for i = 1, #sets do
  local part = call(command, sets[i], from, to, 'WITHSCORES', 'LIMIT', 0, each)
  for j = 1, #part, 2 do found[#found + 1] = { id = part[j], fence = tonumber(part[j + 1]) } end
  if #part == 2 * each then
    local last = found[#found]
    if not horizon or comesBefore(last, horizon) then horizon = last end
  end
end
table.sort(found, comesBefore)

local skipped, ids, last, more = 0, {}, nil, horizon ~= nil
for i = 1, #found do
  local lock = found[i]
  if horizon and comesBefore(horizon, lock) then break end
  if #ids == most then
    more = true
    break
  end
  if skipped < skip then skipped = skipped + 1 else ids[#ids + 1] = lock.id end
  last = lock
end
local columns, bytes = records(ids, tonumber(ARGV[5]))
return { skipped, more and last and digits(last.fence) or '', #columns[1] < #ids and 1 or 0, columns, bytes }
