-- Jobs that were finished or delayed wait again; they have left their places already. A finished one becomes one that has not run:
-- its attempts, stack trace and logs stay.
local function reopen(jobs)
  local finished = {}
  for i = 1, #jobs do
    local job = jobs[i]
    local from = STATES[job.state]
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
