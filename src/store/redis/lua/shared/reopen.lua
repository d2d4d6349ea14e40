-- Makes finished or delayed jobs wait again. A finished job becomes one that has not run, but keeps its
-- stack trace and logs, and its attempts unless they are reset: `resetMade` and `resetStarted` are '1' for that.
local function reopen(jobs, resetMade, resetStarted)
  local finished = {}
  for i = 1, #jobs do leave(jobs[i]) end
  for i = 1, #jobs do
    local job = jobs[i]
    local from = STATES[job.state]
    if resetMade == '1' then job.made = '0' end
    if resetStarted == '1' then job.started = '0' end
    if job.finished ~= '' then
      job.finished, job.processed, job.token = '', '', ''
      finished[#finished + 1], finished[job.id] = job.id, true
      noteSize(call('HSTRLEN', key('job'), job.id))
      if queue.sides == 1 then
        noteSize(call('HSTRLEN', key('stack'), job.id))
        noteSize(call('HSTRLEN', key('progress'), job.id))
      end
    end
    putWaiting(job, false)
    if from == 'delayed' then tell(1, 'P', job.id) else tell(1, 'W', job.id, from) end
  end
  store(jobs)
  for i = 1, #jobs do
    -- A finished job owns its entry again, unless an entry counts.
    local id = jobs[i].marked and finished[jobs[i].id] and openEntries().idOf(jobs[i])
    if id and not entries.counting(id) then entries.set(id, jobs[i].id) end
    if queue.layout > 5 and jobs[i].marked and finished[jobs[i].id] then openFamily().reopened(jobs[i].id) end
  end
  many('HDEL', key('value'), finished)
  many('HDEL', key('reason'), finished)
end
