-- Metrics: finished jobs by the minute.

-- part: metrics
-- Metrics, made on first use: see `lanes` in keys.lua.
local metrics
local function openMetrics()
  if metrics then return metrics end
  metrics = {}
  -- Metrics: the jobs that finished in each minute, if the queue counts (`points` in `counters` in queues.lua). `state` is completed or
  -- failed.
  --   <state>Count      all of them
  --   <state>Minute     the last minute in which a job finished, in minutes since the epoch; 0 before the first job
  --   <state>Current    the jobs of that minute so far
  --   <state>First      the first minute that is kept
  --   minutes:<state>   the whole minutes with a finished job, by minute: minute,jobs. Minutes without one are not stored
  local MINUTE_MS = 60000

  -- Deletes the minutes that are no longer kept.
  function metrics.trim(state)
    local first = settings[state .. 'Minute'] - settings.points + 1
    if first <= settings[state .. 'First'] then return end
    settings[state .. 'First'] = first
    call('ZREMRANGEBYSCORE', key('minutes:' .. state), '-inf', digits(first - 1))
  end

  -- Counts finished jobs. If the clock was set back, they count in the newest minute.
  function metrics.count(state, jobs)
    if settings.points == 0 then return end
    local minute, last = floor(now / MINUTE_MS), settings[state .. 'Minute']
    if last == 0 then
      settings[state .. 'Minute'], settings[state .. 'First'] = minute, minute
    elseif minute > last then
      call('ZADD', key('minutes:' .. state), digits(last), digits(last) .. ',' .. digits(settings[state .. 'Current']))
      settings[state .. 'Minute'], settings[state .. 'Current'] = minute, 0
      metrics.trim(state)
    end
    settings[state .. 'Count'], settings[state .. 'Current'] = settings[state .. 'Count'] + jobs, settings[state .. 'Current'] + jobs
    dirty = true
  end
  return metrics
end

-- name: minutes
-- use: clock tools
-- Reads the whole minutes of metrics in which jobs finished.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: state (completed or failed), first minute, last minute.
-- Returns minute,jobs of each minute in which a job finished.

return call('ZRANGEBYSCORE', key('minutes:' .. ARGV[1]), ARGV[2], ARGV[3])
