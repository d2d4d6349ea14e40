-- Where jobs are by their state, unless they are active. Each place is a sorted set:
--   wait      without priority, by place: back places are ticks, front places lie below zero
--   prio      by priority, then by place, which begins the member so that Redis orders equal scores by it
--   delayed   by the tick of its coming and the delay in µs, so those of one moment keep their order
--   completed, failed   by the tick of their finish, which is its time in µs
local ORD_BIAS = 4e15

local function putWaiting(job, front)
  local place
  if front then
    place = queue.front - 1
    set('front', place)
  else
    place = ticks(1)
  end
  job.state, job.delay = 'w', '0'
  if job.priority == '0' then
    call('ZADD', key('wait'), place, job.id)
  else
    job.ord = format('%016.0f', place + ORD_BIAS)
    call('ZADD', key('prio'), job.priority, job.ord .. job.id)
  end
end

local function putDelayed(job, delayMs)
  job.state, job.delay = 'd', delayMs
  call('ZADD', key('delayed'), ticks(1) + delayMs * 1000, job.id)
end

-- Out of its place; for jobs that are not active.
local function take(job)
  if job.state == 'w' then
    if job.priority == '0' then call('ZREM', key('wait'), job.id) else call('ZREM', key('prio'), job.ord .. job.id) end
    job.ord = ''
  else
    call('ZREM', key(STATES[job.state]), job.id)
  end
end

-- When the next delayed job falls due, in µs.
local function nextDue() return tonumber(call('ZRANGE', key('delayed'), 0, 0, 'WITHSCORES')[2]) end

-- Waiting, or delayed and due.
local function anyWaiting()
  if call('EXISTS', key('wait'), key('prio')) > 0 then return true end
  local due = nextDue()
  return due ~= nil and due <= micros
end
