-- Removes jobs by selection in a queue with families.

-- The pending children of a parent that this script has removed. Their links are deleted by messages, later.
local childrenGone, parentsGone = {}, {}

-- Removes the parents in the same queue that wait for this job alone.
local function removeParents(job, name)
  for _, parent in ipairs(family.parentsOf(family.read(job.id))) do
    if parent.queue == name then
      local id = parent.id
      local pending, link = unpack(call('HMGET', key('links:' .. id), '#p', name .. '\n' .. job.id))
      if link and link:sub(1, 1) == 'p' then childrenGone[id] = (childrenGone[id] or 0) + 1 end
      local one = tonumber(pending or 0) == childrenGone[id] and not parentsGone[id] and find(id)
      if one and one.state == 'p' then
        parentsGone[id] = true
        remove(one)
        erase({ id })
      end
    end
  end
end

-- children: removes the children too. parents: removes parents in the same queue with their last pending child.
local function removeOfFamily(job, name, children, parents)
  -- A parent may be selected beside its child, and is gone then.
  if parentsGone[job.id] then return end
  openFamily().name = name
  if parents then removeParents(job, name) end
  if children then family.partsChildren[job.id] = true end
  remove(job)
end
