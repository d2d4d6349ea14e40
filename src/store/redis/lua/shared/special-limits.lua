-- The parts of a claim that few claims need: its room under a cap, a block, a rate and a window.

-- Returns how many of `count` jobs the cap leaves to a session, by the rule of job/cap.ts. If the session wants no more than the unused
-- part of its share, the locks of other sessions are not counted.
function special.roomUnderCap(session, count)
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

-- Returns how many jobs the request may claim, under a block (configure.lua) and under the window of the rate limit.
function special.room(request)
  if queue.limitedUntil > now then return 0 end
  if not request.max then return request.count end
  return math.min(request.count, request.max - (queue.windowEnds > now and queue.windowUsed or 0))
end

-- Counts claimed jobs in the window of the rate limit. The first claimed job opens the window; a claim without a job does not.
function special.useRoom(request, claims)
  if request.max and queue.windowEnds <= now then
    set('windowEnds', ceil(now + request.durationMs))
    set('windowUsed', 0)
  end
  if queue.windowEnds <= now then return end
  set('windowUsed', queue.windowUsed + claims)
  if request.max then set('windowMax', request.max) end
end

-- Returns the ms until claims are possible again, under the rate limit `max` if it is given; 0 if they are possible now.
function special.limitedMs(max)
  local full = queue.windowEnds > now and max and queue.windowUsed >= max
  return ceil(math.max(0, queue.limitedUntil - now, full and queue.windowEnds - now or 0))
end
