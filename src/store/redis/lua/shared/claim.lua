-- Claiming, alone or after the outcomes of a settle.
-- Delayed jobs that one claim moves to waiting, or as many as it wants: a pile that falls due at once must not block Redis.
local PROMOTED_AT_ONCE = 100

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

-- How many claims the queue still allows: a block that was set by hand, and the window in which limited claims count.
local function room(request)
  if queue.limitedUntil > now then return 0 end
  if not request.max then return request.count end
  return math.min(request.count, request.max - (queue.windowEnds > now and queue.windowUsed or 0))
end

-- The window opens with the first claim, not with the first look.
local function useRoom(request, claims)
  if request.max and queue.windowEnds <= now then
    set('windowEnds', ceil(now + request.durationMs))
    set('windowUsed', 0)
  end
  if queue.windowEnds <= now then return end
  set('windowUsed', queue.windowUsed + claims)
  if request.max then set('windowMax', request.max) end
end

-- Until claims are possible again, under `max` if it is given; 0 when they are.
local function limitedMs(max)
  local full = queue.windowEnds > now and max and queue.windowUsed >= max
  return ceil(math.max(0, queue.limitedUntil - now, full and queue.windowEnds - now or 0))
end

-- The first members of a place, and whether there are more.
-- Not ZPOPMIN, which would answer the scores too: as strings, at half a microsecond each.
local function pop(place, count)
  local members = call('ZRANGE', place, 0, count)
  local more = #members > count
  if more then members[count + 1] = nil end
  if #members > 0 then call('ZREMRANGEBYRANK', place, 0, #members - 1) end
  return members, more
end

-- Up to `count` jobs in the order of claiming: their ids, their runs, and whether more are waiting.
local function popWaiting(count)
  local ids, more = pop(key('wait'), count)
  if #ids < count then
    local members
    members, more = pop(key('prio'), count - #ids)
    for i = 1, #members do ids[#ids + 1] = members[i]:sub(17) end
  elseif not more then
    more = call('EXISTS', key('prio')) == 1
  end
  more = more or anyBehind()
  local texts, size = fetch(key('run'), ids), 0
  for i = 1, #ids do
    -- A place without a job (keys deleted by hand, or evicted) must not keep the others from being claimed.
    if texts[i] then
      size = size + 1
      ids[size], texts[size] = ids[i], texts[i]
    end
  end
  for i = #ids, size + 1, -1 do ids[i], texts[i] = nil, nil end
  return ids, texts, more
end

local NEXT = { ['0'] = '1', ['1'] = '2', ['2'] = '3', ['3'] = '4', ['4'] = '5' }

local function grant(ids, texts, request)
  local size = #ids
  local first, timed = ticks(size), request.timedMs ~= nil
  local ends = timed and digits(ceil(now + request.timedMs)) or ''
  local head = 'a,' .. request.seq .. ',' .. ends .. (timed and ',1,,,0,' or ',0,,,0,')
  local middle, tail = ',' .. digits(floor(now)) .. '\0' .. request.session .. ':', '\0' .. request.by
  local runs, writes, locks, turns, at = {}, {}, {}, {}, toldSize
  for i = 1, size do
    local id, fence = ids[i], digits(first + i - 1)
    -- Not decoded and encoded again: claims and finishes are most of what Redis does here, and this halves them.
    local made, started, rest = match(texts[i], '^w,%d*,%d*,%d,%d*,%d*,%d*,(%d*,)(%d*)(,%d*,%d*,%d*),')
    local run = head .. made .. (NEXT[started] or digits(started + 1)) .. rest .. middle .. fence .. tail
    local lockKey = keyIn(texts[i])
    if lockKey then
      run = run .. '\0' .. lockKey
      turns[#turns + 1], turns[#turns + 2] = lockKey, 'a'
      if turned then turned[id] = nil end
    end
    runs[i] = run
    writes[2 * i - 1], writes[2 * i] = id, run
    locks[2 * i - 1], locks[2 * i] = fence, id
    told[at + 1], told[at + 2] = 'X', id
    at = at + 2
  end
  toldSize, toldEvents = at, toldEvents + size
  many('HSET', key('run'), writes)
  many('HSET', key('turns'), turns)
  many('ZADD', key((timed and 'ending:' or 'bound:') .. request.session), locks)
  if timed then
    for i = 1, 2 * size, 2 do locks[i] = ends end
    many('ZADD', key('ends'), locks)
  end
  set('active', queue.active + size)
  return runs
end

-- What a claim under this seq got, as far as it is still owned under it: among the newest locks of the session, unless it was
-- followed by others, and then nobody waits for the answer.
local function grantedBefore(request)
  local ids, runs = {}, {}
  for _, kind in ipairs({ 'bound:', 'ending:' }) do
    local held = call('ZREVRANGE', key(kind .. request.session), 0, request.count - 1)
    local texts = fetch(key('run'), held)
    for i = #held, 1, -1 do
      local text = texts[i]
      if text and match(text, '^a,(%d*)') == request.seq then ids[#ids + 1], runs[#runs + 1] = held[i], text end
    end
  end
  return ids, runs
end

-- Answers alive, paused, limitedMs, nextInMs or -1, drained, and the claimed jobs as columns. `keepSeq` must follow it.
local function claim(request)
  local session, due = openSession(request.session), nextDue()
  local alive = session and session.expires > now
  local ids, runs, waiting = {}, {}, nil
  if alive then
    local seq = tonumber(request.seq)
    if seq <= session.seq then
      -- Carried out already, or a straggler that its caller gave up on: it may see what it got, never get more.
      ids, runs = grantedBefore(request)
    else
      session.seq, session.changed = seq, true
      local texts
      if request.jobIds then
        ids, texts = openSpecial().takeNamed(request)
        due = nextDue()
      else
        local count = queue.paused == 1 and 0 or room(request)
        -- Also when the cap leaves no room: a due job that stayed delayed would look claimable by time alone.
        if count > 0 and due and due <= micros then
          promoteDue(count)
          due = nextDue()
        end
        if count > 0 and queue.cap > 0 then count = openSpecial().roomUnderCap(request.session, count) end
        if count > 0 then ids, texts, waiting = popWaiting(count) end
      end
      if #ids > 0 then
        runs = grant(ids, texts, request)
        useRoom(request, #ids)
      end
    end
  end
  local limited, nextInMs = limitedMs(request.max), -1
  if waiting == nil then waiting = call('EXISTS', key('wait'), key('prio')) > 0 or anyBehind() end
  if due and due <= micros then waiting = true end
  -- No time that passes makes a job of a paused queue claimable.
  if queue.paused == 0 then
    if limited > 0 then
      nextInMs = limited
    elseif due then
      nextInMs = math.max(0, ceil((due - micros) / 1000))
    end
  end
  local reply = { alive and 1 or 0, queue.paused, limited, nextInMs, waiting and 0 or 1, ids, runs, fetch(key('job'), ids) }
  if #ids > 0 and queue.sides == 1 then
    reply[9], reply[10], reply[11] = fetch(key('reason'), ids), fetch(key('stack'), ids), fetch(key('progress'), ids)
  end
  return reply
end

-- Writes the number of the session's last call; `memory` are fields that go with it.
local function keepSeq(id, ...)
  local session = openSession(id)
  if session and (session.changed or ...) then call('HSET', key('s:' .. id), 'seq', session.seq, ...) end
end

-- session, seq, count, by, timedMs, max, durationMs, and how many job ids there are at the end of all; empty where there is none.
local function claimRequest(at)
  local request = {
    session = ARGV[at], seq = ARGV[at + 1], count = tonumber(ARGV[at + 2]), by = ARGV[at + 3], timedMs = tonumber(ARGV[at + 4]),
    max = tonumber(ARGV[at + 5]), durationMs = tonumber(ARGV[at + 6]),
  }
  local named = tonumber(ARGV[at + 7])
  if named then
    request.jobIds = {}
    for i = 1, named do request.jobIds[i] = ARGV[#ARGV - named + i] end
  end
  return request
end
