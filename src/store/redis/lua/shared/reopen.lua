-- A job that was finished or delayed waits again. A finished one becomes one that has not run: its attempts, stack trace and logs stay.
local function reopen(job)
  local from = STATES[job.state]
  take(job)
  if job.finished ~= '' then
    job.finished, job.processed, job.token = '', '', ''
    call('HDEL', key('value'), job.id)
    call('HDEL', key('reason'), job.id)
  end
  putWaiting(job, false)
  if from == 'delayed' then tell(1, 'P', job.id) else tell(1, 'W', job.id, from) end
end
