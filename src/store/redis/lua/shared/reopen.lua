-- Makes finished or delayed jobs wait again. The caller has removed them from their places before, and stores them afterwards. A finished
-- job becomes one that has not run, but keeps its stack trace and logs, and its attempts unless they are reset: `resetMade` and
-- `resetStarted` are '1' for that.
local function reopen(jobs, resetMade, resetStarted)
  local finished = {}
  for i = 1, #jobs do
    local job = jobs[i]
    local from = STATES[job.state]
    if resetMade == '1' then job.made = '0' end
    if resetStarted == '1' then job.started = '0' end
    if job.finished ~= '' then
      job.finished, job.processed, job.token = '', '', ''
      finished[#finished + 1] = job.id
      noteSize(call('HSTRLEN', key('job'), job.id))
      if queue.sides == 1 then
        noteSize(call('HSTRLEN', key('stack'), job.id))
        noteSize(call('HSTRLEN', key('progress'), job.id))
      end
    end
    putWaiting(job, false)
    if from == 'delayed' then tell(1, 'P', job.id) else tell(1, 'W', job.id, from) end
  end
  many('HDEL', key('value'), finished)
  many('HDEL', key('reason'), finished)
end
