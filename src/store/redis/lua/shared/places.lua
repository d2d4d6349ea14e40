-- The places of jobs that are not active, by state. Each place is a sorted set:
--   wait      waiting jobs without a priority, by place number: at the back these are ticks, at the front numbers below zero
--   prio      waiting jobs by priority, then by place number, which begins the member so that Redis sorts equal scores by it
--   delayed   by the tick of adding plus the delay in µs, so jobs of one moment keep their order
--   completed, failed   by the tick of finishing, which is the time in µs
-- Scripts put jobs into places and pull them out one by one; `flushPlaces` writes all of this together before a place is read, first
-- what was pulled. Waiting jobs with a lock key: see lane-moves.lua. Those of groups: see group-states.lua.
local placed, anyPlaced, pulled = { wait = {}, prio = {}, delayed = {} }, false, nil

local function put(place, score, member)
  local list = placed[place]
  list[#list + 1] = score
  list[#list + 1] = member
  anyPlaced = true
end

local function flushPlaces()
  if lanes then lanes.arrange() end
  if groups then groups.flush() end
  for place, list in pairs(pulled or {}) do many('ZREM', key(place), list) end
  pulled = nil
  if not anyPlaced then return end
  for place, list in pairs(placed) do
    many('ZADD', key(place), list)
    placed[place] = {}
  end
  anyPlaced = false
end

local function pull(place, member)
  if anyPlaced then flushPlaces() end
  pulled = pulled or {}
  pulled[place] = pulled[place] or {}
  table.insert(pulled[place], member)
end

-- Makes a job wait: at the place `given`, else in front of all jobs (`front`), else behind all jobs.
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
    job.ord = openLanes().lineUp(job, place)
    return
  elseif job.group then
    job.ord = openGroups().lineUp(job, place)
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

-- Delays a job. Returns the time at which it is due, in ms, for the event.
local function putDelayed(job, delayMs)
  job.state, job.delay = 'd', delayMs
  put('delayed', digits(ticks(1) + delayMs * 1000), job.id)
  set('delays', 1)
  offer()
  return digits(ceil(now + delayMs))
end

-- Returns the time at which the next delayed job is due, in µs; nil if there is none.
local function nextDue()
  flushPlaces()
  if queue.delays == 0 then return nil end
  local due = tonumber(call('ZRANGE', key('delayed'), 0, 0, 'WITHSCORES')[2])
  if not due then set('delays', 0) end
  return due
end

-- Returns whether any job waits, or is delayed and due.
local function anyWaiting()
  local due = nextDue()
  return (due ~= nil and due <= micros) or call('EXISTS', key('wait'), key('prio')) > 0 or anyBehind()
end
