-- Claims that few queues see: of named jobs, and under a cap. Made when they are first needed, as the lanes are.
local special
local function openSpecial()
  if special then return special end
  -- Those of the named jobs that wait, or are due, and whose key is free: out of their places, in the order of their names.
  local function takeNamed(request)
    local ids, texts, taken = {}, {}, {}
    flushPlaces()
    for i = 1, #request.jobIds do
      local id = request.jobIds[i]
      local job = #ids < request.count and not taken[id] and find(id)
      if job and job.state == 'd' and (tonumber(call('ZSCORE', key('delayed'), id)) or math.huge) <= micros then
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
        end
      end
    end
    return ids, texts
  end

  -- How many of `count` jobs the cap leaves to a session. As job/cap.ts says; who wants no more than is left of its share is answered
  -- without a look at the jobs of others.
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

  special = { takeNamed = takeNamed, roomUnderCap = roomUnderCap }
  return special
end
