-- use: clock records
-- ARGV: positions to skip, fence to go on after ('' from the end where the list begins), 1 for ascending, most jobs to answer.
-- Locks lie with their sessions by fence; the list is all of them together. Answers the fence to go on after ('' : that was all)
-- and the records.
local skip, after, ascending, most = tonumber(ARGV[1]), ARGV[2], ARGV[3] == '1', tonumber(ARGV[4])
local found = {}
local function collect(set)
  local part
  if ascending then
    part = call('ZRANGEBYSCORE', set, after == '' and '-inf' or '(' .. after, '+inf', 'WITHSCORES', 'LIMIT', 0, skip + most)
  else
    part = call('ZREVRANGEBYSCORE', set, after == '' and '+inf' or '(' .. after, '-inf', 'WITHSCORES', 'LIMIT', 0, skip + most)
  end
  for i = 1, #part, 2 do found[#found + 1] = { id = part[i], fence = tonumber(part[i + 1]) } end
end
for _, session in ipairs(call('SMEMBERS', key('holders'))) do
  collect(key('bound:' .. session))
  collect(key('ending:' .. session))
end
table.sort(found, function(a, b)
  if ascending then return a.fence < b.fence end
  return a.fence > b.fence
end)
local ids = {}
for i = skip + 1, math.min(#found, skip + most) do ids[#ids + 1] = found[i].id end
local last = found[skip + #ids]
return { #found > skip + #ids and last and digits(last.fence) or '', records(ids) }
