-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks marking families entries schedules locks leave arrivals
-- Parts parents from a child that is pending.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: name of the queue of the child, id of the child, then job ids of parents.
-- Returns a letter for each job: d done, m missing, s there is no such link. The queues that got messages follow, each after NUL.
local field, results = ARGV[1] .. '\n' .. ARGV[2], {}
for i = 3, #ARGV do
  local id = ARGV[i]
  local counts = countsOf(id)
  if not exists(id) then
    results[#results + 1] = 'm'
  elseif not match(call('HGET', counts.links, field) or '', '^p') then
    results[#results + 1] = 's'
  else
    deleteLink(counts, field, 'p')
    family.send(ARGV[1], 'x', ARGV[2], id, '0')
    if isFree(counts) then releaseParent(id) end
    results[#results + 1] = 'd'
  end
end
writeCounts()
flushPlaces()
save()
return concat(results) .. sentTo()
