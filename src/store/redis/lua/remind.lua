-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks marking families
-- Sends the ends of children to their parents once more. A child that is gone, or no longer has the parent, counts as removed.
-- KEYS: tag, the hash tag of the queue of the children.
-- ARGV: queue of the parents, then for each link: parent, child, bond.
-- Returns the queues that got messages.
openFamily()

local function remind(parent, id, bond)
  local job = find(id)
  local entry
  for _, known in ipairs(job and family.parentsOf(family.read(id)) or {}) do
    if family.isSame(known, { queue = ARGV[1], id = parent }) then entry = known end
  end
  if not entry then return family.tellRemoval({ queue = ARGV[1], id = parent, n = bond }, id) end
  -- Another bond: a later link is under way.
  if job.finished == '' or entry.n ~= bond then return end
  local text = job.state == 'c' and (call('HGET', key('value'), id) or 'null') or call('HGET', key('reason'), id) or ''
  family.tellEnd(entry, id, job.state, text)
end

for at = 2, #ARGV, 3 do remind(ARGV[at], ARGV[at + 1], ARGV[at + 2]) end
save()
return receivers() or {}
