-- Fails jobs for a reason that is not an outcome of their run: they stalled too often, or were cancelled.

-- Reads removeOnFail from the job's options, for a failure that no worker reports. Returns count and age in ms, each nil if it does not
-- limit.
local function keepOnFail(id)
  local text = call('HGET', key('job'), id)
  local opts = text and match(text, '^[^%z]*%z[^%z]*%z([^%z]*)%z')
  local ok, options = pcall(cjson.decode, opts or '{}')
  local rule = ok and type(options) == 'table' and options.removeOnFail
  if rule == true then return 0 end
  if type(rule) == 'number' then return rule end
  if type(rule) ~= 'table' then return end
  return type(rule.count) == 'number' and rule.count or nil, type(rule.age) == 'number' and rule.age * 1000 or nil
end

-- Lets a job that has left its place be a failed one. The caller records its events before. token: of its run, '' if it did not run.
-- `failing.store` must follow.
function failing.fail(job, reason, token, isCancelled)
  job.state, job.finished, job.reason = 'f', digits(floor(now)), reason
  ended(job, { state = 'f', text = reason, made = job.made, token = token, isCancelled = isCancelled })
end

-- Fails a cancelled job that would wait again, or one that is cancelled now. `flushUnlocked` and `failing.store` must follow.
function failing.cancel(job, reason)
  local from, token = job.state, job.token
  leave(job)
  if from == 'd' then job.delay = '0' end
  -- An active job uses the record of a failed run, which readers of older versions know. Without attempts, it stands for one event.
  if from == 'a' then tell(2, 'F', job.id, reason, '') else tell(1, 'A', job.id, reason, STATES[from]) end
  failing.fail(job, reason, token, true)
end

-- Stores failed jobs. It trims the list of failed jobs once for all of them: trimming for each job could work off a long list within one
-- script.
function failing.store(jobs)
  if settings and #jobs > 0 then openMetrics().count('failed', #jobs) end
  local kept, ids, gone, reasons, most, age = {}, {}, {}, {}, nil, nil
  for i = 1, #jobs do
    local job = jobs[i]
    local count, ageMs = keepOnFail(job.id)
    if count == 0 then
      gone[#gone + 1] = job.id
    else
      kept[#kept + 1], ids[#ids + 1] = job, job.id
      reasons[#reasons + 1], reasons[#reasons + 2] = job.id, job.reason
      most, age = least(most, count), least(age, ageMs)
    end
  end
  erase(gone)
  if #kept == 0 then return end
  many('HSET', key('reason'), reasons)
  set('sides', 1)
  store(kept)
  putFinished('failed', ids, most, age)
end
