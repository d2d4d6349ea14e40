-- The parts of a claim that few claims need: named jobs, a cap, a limit, due jobs, a repetition. The functions are made on first use, as in
-- lanes.lua.
-- PROMOTED_AT_ONCE: the delayed jobs that one claim makes wait, unless it wants more. Many jobs due at once must not block Redis.
local PROMOTED_AT_ONCE = 100
-- LOOKED_BACK: the newest locks of a session among which a repeated claim looks for its jobs, PAGE at a time.
local PAGE, LOOKED_BACK = 200, 5000
local special
local function openSpecial()
  if special then return special end
  -- Removes the jobs that the request names from their places, in this order. It skips jobs that neither wait nor are due, and jobs whose
  -- lock key is taken. `fits` returns whether one more job is within the budget (nil: no budget). Returns ids, run texts, and whether the
  -- budget was the limit.
  local function takeNamed(request, budget, fits)
    local ids, texts, taken = {}, {}, {}
    flushPlaces()
    for i = 1, #request.jobIds do
      local id = request.jobIds[i]
      local job = #ids < request.count and not taken[id] and find(id)
      local due = job and job.state == 'd' and (tonumber(call('ZSCORE', key('delayed'), id)) or math.huge) <= micros
      local before = budget and budget.left
      if budget and (due or job and job.state == 'w') and not fits(budget, id) then break end
      if due then
        take(job)
        putWaiting(job, false)
        tell(1, 'P', id)
        store({ job })
        flushPlaces()
      end
      if job and job.state == 'w' then
        local free = true
        if job.key then free = openLanes().takeTurn(job) else take(job) end
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

  -- Returns how many of `count` jobs the cap leaves to a session, by the rule of job/cap.ts. If the session wants no more than the unused
  -- part of its share, the locks of other sessions are not counted.
  local function roomUnderCap(session, count)
    local free = queue.cap - 1 - queue.active
    if free <= 0 then return 0 end
    local wanted = math.min(free, count)
    local ids = call('ZRANGEBYSCORE', key('sessions'), '(' .. digits(floor(now)), '+inf')
    local slots, sharing = fetch(key('slots'), ids), 0
    for i = 1, #ids do
      slots[i] = tonumber(slots[i]) or 0
      if slots[i] > 0 then sharing = sharing + 1 end
    end
    local share = math.max(1, floor((queue.cap - 1) / math.max(1, sharing)))
    local function unused(i)
      local most = math.min(share, slots[i])
      if most == 0 then return 0 end
      return math.max(0, most - call('ZCARD', key('bound:' .. ids[i])) - call('ZCARD', key('ending:' .. ids[i])))
    end
    local own, left = 0, free
    for i = 1, #ids do
      if ids[i] == session then own = unused(i) end
    end
    for i = 1, #ids do
      if own >= wanted or left <= own then break end
      if ids[i] ~= session then left = left - unused(i) end
    end
    return math.min(wanted, math.max(own, left))
  end

  local function promoteDue(wanted)
    local most = math.max(PROMOTED_AT_ONCE, wanted)
    local ids = call('ZRANGEBYSCORE', key('delayed'), '-inf', micros, 'LIMIT', 0, most)
    many('ZREM', key('delayed'), ids)
    local jobs = jobsOf(ids)
    for i = 1, #jobs do
      putWaiting(jobs[i], false)
      tell(1, 'P', jobs[i].id)
    end
    store(jobs)
  end

  -- Returns how many jobs the request may claim, under a block (limit.lua) and under the window of the rate limit.
  local function room(request)
    if queue.limitedUntil > now then return 0 end
    if not request.max then return request.count end
    return math.min(request.count, request.max - (queue.windowEnds > now and queue.windowUsed or 0))
  end

  -- Counts claimed jobs in the window of the rate limit. The first claimed job opens the window; a claim without a job does not.
  local function useRoom(request, claims)
    if request.max and queue.windowEnds <= now then
      set('windowEnds', ceil(now + request.durationMs))
      set('windowUsed', 0)
    end
    if queue.windowEnds <= now then return end
    set('windowUsed', queue.windowUsed + claims)
    if request.max then set('windowMax', request.max) end
  end

  -- Returns the ms until claims are possible again, under the rate limit `max` if it is given; 0 if they are possible now.
  local function limitedMs(max)
    local full = queue.windowEnds > now and max and queue.windowUsed >= max
    return ceil(math.max(0, queue.limitedUntil - now, full and queue.windowEnds - now or 0))
  end

  -- Returns the locks that a session got under this seq, among its newest locks, read page by page. Once a page after a hit has none, the
  -- search ends, because the fences of one claim are consecutive.
  local function heldUnder(seq, holder)
    local found = {}
    for from = 0, LOOKED_BACK - 1, PAGE do
      local held, before = call('ZREVRANGE', holder, from, from + PAGE - 1), #found
      local texts = fetch(key('run'), held)
      for i = 1, #held do
        if texts[i] and match(texts[i], '^a,(%d*)') == seq then found[#found + 1] = { held[i], texts[i] } end
      end
      if #held < PAGE or (before > 0 and #found == before) then break end
    end
    return found
  end

  -- Returns the jobs that a claim under this seq got and that the session still owns. Other lanes may have claimed more since.
  local function grantedBefore(request)
    local ids, granted = {}, {}
    for _, kind in ipairs({ 'bound:', 'ending:' }) do
      local found = heldUnder(request.seq, key(kind .. request.session))
      for i = #found, 1, -1 do
        local id, text = unpack(found[i])
        local numbers, token = match(text, '^a,%d*,%d*,%d,,,0,([%d,]*)%z([^%z]*)')
        local size = #granted
        ids[#ids + 1] = id
        granted[size + 1], granted[size + 2], granted[size + 3] = id, fenceOf(token), numbers
      end
    end
    return ids, granted
  end

  special = {
    takeNamed = takeNamed, roomUnderCap = roomUnderCap, promoteDue = promoteDue, room = room, useRoom = useRoom,
    limitedMs = limitedMs, grantedBefore = grantedBefore,
  }
  return special
end
