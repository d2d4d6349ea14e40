-- Where jobs are by their state, unless they are active. Each place is a sorted set:
--   wait      without priority, by place: back places are ticks, front places lie below zero
--   prio      by priority, then by place, which begins the member so that Redis orders equal scores by it
--   delayed   by the tick of its coming and the delay in µs, so those of one moment keep their order
--   completed, failed   by the tick of their finish, which is its time in µs
-- Jobs are put one by one, and written together before anybody looks. Waiting jobs with a lock key are in lanes: see lanes.lua.
local placed, anyPlaced = { wait = {}, prio = {}, delayed = {} }, false

local function put(place, score, member)
  local list = placed[place]
  list[#list + 1] = score
  list[#list + 1] = member
  anyPlaced = true
end

local function flushPlaces()
  if lanes then lanes.arrange() end
  if not anyPlaced then return end
  for place, list in pairs(placed) do
    many('ZADD', key(place), list)
    placed[place] = {}
  end
  anyPlaced = false
end

-- Ahead of all, at the place that is given, or behind all.
local function putWaiting(job, front, given)
  local place
  if given then
    place = given
  elseif front then
    place = queue.front - 1
    set('front', place)
  else
    place = ticks(1)
  end
  job.state, job.delay = 'w', '0'
  if job.key then
    job.ord = openLanes().lineUp(job.key, job.id, job.priority, place)
    return
  end
  offer()
  if job.priority == '0' then
    put('wait', digits(place), job.id)
  else
    job.ord = format('%016.0f', place + ORD_BIAS)
    put('prio', job.priority, job.ord .. job.id)
  end
end

-- Answers when it falls due, in ms, as events tell it.
local function putDelayed(job, delayMs)
  job.state, job.delay = 'd', delayMs
  put('delayed', digits(ticks(1) + delayMs * 1000), job.id)
  set('delays', 1)
  offer()
  return digits(ceil(now + delayMs))
end

-- Out of its place; for jobs that are not active.
local function take(job)
  flushPlaces()
  if job.key and job.state == 'w' then
    openLanes().leaveLine(job)
    job.ord = ''
  elseif job.state == 'w' then
    if job.priority == '0' then call('ZREM', key('wait'), job.id) else call('ZREM', key('prio'), job.ord .. job.id) end
    job.ord = ''
  else
    call('ZREM', key(STATES[job.state]), job.id)
  end
end

-- When the next delayed job falls due, in µs.
local function nextDue()
  flushPlaces()
  if queue.delays == 0 then return nil end
  local due = tonumber(call('ZRANGE', key('delayed'), 0, 0, 'WITHSCORES')[2])
  if not due then set('delays', 0) end
  return due
end

-- Waiting, or delayed and due.
local function anyWaiting()
  local due = nextDue()
  return (due ~= nil and due <= micros) or call('EXISTS', key('wait'), key('prio')) > 0 or anyBehind()
end
