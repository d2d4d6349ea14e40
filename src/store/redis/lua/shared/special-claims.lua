-- The parts of a claim that few claims need: named jobs, a cap, a limit, due jobs, a repetition.
-- PROMOTED_AT_ONCE: the delayed jobs that one claim makes wait, unless it wants more. Many jobs due at once must not block Redis.
local PROMOTED_AT_ONCE = 100
-- LOOKED_BACK: the newest locks of a session among which a repeated claim looks for its jobs, PAGE at a time.
local PAGE, LOOKED_BACK = 200, 5000

-- Removes the jobs that the request names from their places, in this order. It skips jobs that neither wait nor are due, and jobs whose
-- lock key is taken or whose group has no place. `fits` returns whether one more job is within the budget (nil: no budget). Returns ids,
-- run texts, and whether the budget was the limit.
function special.takeNamed(request, budget, fits)
  local ids, texts, taken = {}, {}, {}
  flushPlaces()
  for i = 1, #request.jobIds do
    local id = request.jobIds[i]
    local job = #ids < request.count and not taken[id] and find(id)
    local due = job and job.state == 'd' and (tonumber(call('ZSCORE', key('delayed'), id)) or math.huge) <= micros
    local before = budget and budget.left
    if budget and (due or job and job.state == 'w') and not fits(budget, id) then break end
    if due then
      leave(job)
      putWaiting(job, false)
      tell(1, 'P', id)
      store({ job })
      flushPlaces()
    end
    if job and job.state == 'w' then
      local free = true
      if job.key then
        free = openLanes().takeTurn(job)
      elseif job.group then
        free = openGroups().takeNamed(job)
      else
        leave(job)
      end
      if free then
        taken[id] = true
        ids[#ids + 1], texts[#texts + 1] = id, encode(job)
      elseif budget then
        budget.left, budget.first = before, #ids == 0
      end
    end
  end
  return ids, texts, budget and budget.cut
end

function special.promoteDue(wanted)
  local most = math.max(PROMOTED_AT_ONCE, wanted)
  local ids = call('ZRANGEBYSCORE', key('delayed'), '-inf', micros, 'LIMIT', 0, most)
  local jobs = jobsOf(ids)
  for i = 1, #jobs do leave(jobs[i]) end
  for i = 1, #jobs do
    putWaiting(jobs[i], false)
    tell(1, 'P', jobs[i].id)
  end
  store(jobs)
end

-- Returns the locks that a session got under this seq, among its newest locks, read page by page. Once a page after a hit has none, the
-- search ends, because the fences of one claim are consecutive.
local function heldUnder(seq, holder)
  local found = {}
  for from = 0, LOOKED_BACK - 1, PAGE do
    local held, before = call('ZREVRANGE', holder, from, from + PAGE - 1), #found
    local texts = fetch(key('run'), held)
    for i = 1, #held do
      if texts[i] and match(texts[i], HELD_UNDER) == seq then found[#found + 1] = { held[i], texts[i] } end
    end
    if #held < PAGE or (before > 0 and #found == before) then break end
  end
  return found
end

-- Returns the jobs that a claim under this seq got and that the session still owns. Other lanes may have claimed more since.
function special.grantedBefore(request)
  local ids, granted = {}, {}
  for _, kind in ipairs({ 'bound:', 'ending:' }) do
    local found = heldUnder(request.seq, key(kind .. request.session))
    for i = #found, 1, -1 do
      local id, text = unpack(found[i])
      local job = decode(id, text)
      local size = #granted
      ids[#ids + 1] = id
      granted[size + 1], granted[size + 2], granted[size + 3] = id, fenceOf(job.token), numbersOf(job)
    end
  end
  return ids, granted
end
