-- Metrics: the jobs that finished in each minute, if the queue counts (`points` in counters.lua). `state` is completed or failed.
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
