-- use: clock records
-- ARGV: positions to skip, fence to go on after ('' from the end where the list begins), 1 for ascending, most jobs to answer, most bytes.
-- Locks lie with their sessions by fence; the list is all of them together. A call looks at about LOOKED_AT of them, however many
-- there are: it answers how many positions it skipped, the fence to go on after ('' : that was all), whether the bytes were too few,
-- the records that it found and their bytes.
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
-- What lies behind the last one seen of a set that has more may lie before those seen of others: it is left for the next call.
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
