-- Claiming, alone or after the outcomes of a settle.
-- Delayed jobs that one claim moves to waiting: a pile that falls due at once must not block Redis.
local PROMOTED_AT_ONCE = 200

local function promoteDue()
  local ids = call('ZRANGEBYSCORE', key('delayed'), '-inf', micros, 'LIMIT', 0, PROMOTED_AT_ONCE)
  if #ids == 0 then return end
  many('ZREM', key('delayed'), ids)
  local texts, runs = fetch(key('run'), ids), {}
  for i = 1, #ids do
    local job = decode(ids[i], texts[i])
    putWaiting(job, false)
    tell(1, 'P', job.id)
    runs[2 * i - 1], runs[2 * i] = job.id, encode(job)
  end
  many('HSET', key('run'), runs)
end

-- How many claims the queue still allows: a block that was set by hand, and the window in which limited claims count.
local function room(request)
  if queue.limitedUntil > now then return 0 end
  if not request.max then return request.count end
  return math.min(request.count, request.max - (queue.windowEnds > now and queue.windowUsed or 0))
end

-- The window opens with the first claim, not with the first look.
local function useRoom(request, claims)
  if claims == 0 then return end
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

local function popWaiting(count)
  local ids = {}
  if count <= 0 then return ids end
  local popped = call('ZPOPMIN', key('wait'), count)
  for i = 1, #popped, 2 do ids[#ids + 1] = popped[i] end
  if #ids < count then
    popped = call('ZPOPMIN', key('prio'), count - #ids)
    for i = 1, #popped, 2 do ids[#ids + 1] = popped[i]:sub(17) end
  end
  return ids
end

local function grant(ids, request)
  local size, texts = #ids, fetch(key('run'), ids)
  local first, since = ticks(size), digits(floor(now))
  local ends = request.timedMs and digits(ceil(now + request.timedMs)) or ''
  local tail = ',' .. request.seq .. ',' .. ends .. ',' .. (request.timedMs and '1' or '0') .. '\0' .. request.session .. '\0' .. request.by
  local runs, writes, actives = {}, {}, {}
  for i = 1, size do
    local id, fence = ids[i], digits(first + i - 1)
    -- Written out rather than decoded and encoded again: it is a third of the work of a claim.
    local priority, made, started, stalls, added = match(texts[i], '^%a,(%d*),%d*,%d*,(%d*),(%d*),(%d*),(%d*)')
    local run = 'a,' .. priority .. ',,0,' .. made .. ',' .. (started + 1) .. ',' .. stalls .. ',' .. added .. ',' .. since .. ',,' .. fence .. tail
    runs[i] = run
    writes[2 * i - 1], writes[2 * i] = id, run
    actives[2 * i - 1], actives[2 * i] = fence, id
    tell(1, 'X', id)
  end
  many('HSET', key('run'), writes)
  many('ZADD', key('active'), actives)
  many('ZADD', key((request.timedMs and 'ending:' or 'bound:') .. request.session), actives)
  if request.timedMs then
    for i = 1, 2 * size, 2 do actives[i] = ends end
    many('ZADD', key('ends'), actives)
  end
  return runs
end

-- What a claim under this seq got, as far as it is still owned under it.
local function grantedBefore(request)
  local ids, runs = {}, {}
  for _, kind in ipairs({ 'bound:', 'ending:' }) do
    local held = call('ZRANGE', key(kind .. request.session), 0, -1)
    local texts = fetch(key('run'), held)
    for i = 1, #held do
      if match(texts[i], '^%a' .. (',%d*'):rep(10) .. ',(%d*)') == request.seq then
        ids[#ids + 1], runs[#runs + 1] = held[i], texts[i]
      end
    end
  end
  return ids, runs
end

-- Answers alive, paused, limitedMs, nextInMs or -1, drained, and the claimed jobs as columns.
local function claim(request)
  local own = key('s:' .. request.session)
  local expires = tonumber(isOpen(request.session) or nil)
  local alive = expires ~= nil and expires > now
  local ids, runs = {}, {}
  if alive then
    local last = tonumber(call('HGET', own, 'seq')) or 0
    if tonumber(request.seq) <= last then
      -- Carried out already, or a straggler that its caller gave up on: it may see what it got, never get more.
      ids, runs = grantedBefore(request)
    else
      call('HSET', own, 'seq', request.seq)
      local count = queue.paused == 1 and 0 or room(request)
      if count > 0 then
        promoteDue()
        ids = popWaiting(count)
        if #ids > 0 then runs = grant(ids, request) end
        useRoom(request, #ids)
      end
    end
  end
  local limited, due = limitedMs(request.max), nextDue()
  local waiting = call('EXISTS', key('wait'), key('prio')) > 0 or (due ~= nil and due <= micros)
  local nextInMs = -1
  -- No time that passes makes a job of a paused queue claimable.
  if queue.paused == 0 then
    if limited > 0 then
      nextInMs = limited
    elseif due then
      nextInMs = math.max(0, ceil((due - micros) / 1000))
    end
  end
  local reply = { alive and 1 or 0, queue.paused, limited, nextInMs, waiting and 0 or 1, ids, runs, fetch(key('job'), ids) }
  if #ids > 0 then
    reply[9], reply[10], reply[11] = fetch(key('reason'), ids), fetch(key('stack'), ids), fetch(key('progress'), ids)
  end
  return reply
end

-- session, seq, count, by, timedMs, max, durationMs; empty where there is none.
local function claimRequest(at)
  return {
    session = ARGV[at], seq = ARGV[at + 1], count = tonumber(ARGV[at + 2]), by = ARGV[at + 3], timedMs = tonumber(ARGV[at + 4]),
    max = tonumber(ARGV[at + 5]), durationMs = tonumber(ARGV[at + 6]),
  }
end
