-- The places that a claim takes jobs from, in claim order, and the byte budget of its reply.

-- Returns the bytes of this job in a reply. HSTRLEN measures texts without copying them.
local function sizeOf(id)
  local size = call('HSTRLEN', key('job'), id)
  if queue.sides == 0 then return size end
  return size + call('HSTRLEN', key('stack'), id) + call('HSTRLEN', key('progress'), id)
end

-- Returns the byte budget for a claim of `count` jobs; nil for one job, and if that many of the largest job fit into a reply. `left` is
-- the bytes that are left; `cut` is true once a job did not fit.
local function budgetOf(count)
  return count > 1 and count * queue.largest > REPLY_BYTES and { left = REPLY_BYTES, first = true } or nil
end

-- Returns whether the job fits into the budget, and charges its bytes. The first job always fits.
local function fits(budget, id)
  budget.left = budget.left - sizeOf(id)
  budget.cut = budget.left < 0 and not budget.first
  budget.first = false
  return not budget.cut
end

-- Removes and returns the first members of a place, within the budget, and whether the place has more. Ids begin at `idAt`.
-- It does not use ZPOPMIN, because ZPOPMIN also returns the scores as strings, at half a microsecond each.
local function pop(place, count, idAt, budget)
  local members = call('ZRANGE', place, 0, count)
  local more = #members > count
  if more then members[count + 1] = nil end
  for i = 1, budget and #members or 0 do
    if not fits(budget, members[i]:sub(idAt)) then
      for j = #members, i, -1 do members[j] = nil end
      more = true
      break
    end
  end
  if #members > 0 then call('ZREMRANGEBYRANK', place, 0, #members - 1) end
  return members, more
end

-- Returns whether a group may be in line. Queues of layout 6 may never have had one.
local function anyGroups()
  return queue.layout > 4 and (queue.layout < 6 or groups ~= nil or call('EXISTS', key('ring'), key('aside')) > 0)
end

-- Removes up to `count` jobs in claim order. Returns their ids, their runs, whether more jobs wait, and whether the budget was the limit.
local function popWaiting(count)
  local budget = budgetOf(count)
  if anyGroups() then
    local ids, texts, cut = openGroups().pop(count, budget, fits)
    return ids, texts, nil, cut
  end
  local ids, more = pop(key('wait'), count, 1, budget)
  if #ids < count and not (budget and budget.cut) then
    local members
    members, more = pop(key('prio'), count - #ids, 17, budget)
    for i = 1, #members do ids[#ids + 1] = members[i]:sub(17) end
  elseif not more then
    more = call('EXISTS', key('prio')) == 1
  end
  more = more or anyBehind()
  local texts, size = fetch(key('run'), ids), 0
  for i = 1, #ids do
    -- Skip a place without a job (a user deleted keys, or Redis evicted them): it must not block the claim of other jobs.
    if texts[i] then
      size = size + 1
      ids[size], texts[size] = ids[i], texts[i]
    end
  end
  for i = #ids, size + 1, -1 do ids[i], texts[i] = nil, nil end
  return ids, texts, more, budget and budget.cut
end
