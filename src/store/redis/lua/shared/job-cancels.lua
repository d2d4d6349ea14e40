-- Cancelled jobs (see `cancel` in contract/changing.ts). An active job that was cancelled has the bit `cancelled`, and the reason in its extras.

-- Returns why a marked job was cancelled; nil if it was not.
function marking.cancelled(job) return extraOf(call('HGET', key('extra'), job.id), CANCELLED, 'c') end

-- Cancels an active job that was not cancelled before.
function marking.cancel(job, reason)
  local marks, fields = marking.read(job.id)
  fields.c = reason
  marking.write(job.id, marks + CANCELLED, fields)
  -- In layout 5, the fast path of settles takes a marked job of a group for one without other marks.
  raiseForMarks(queue.layout == 5 and digits(CANCELLED) or '0')
  if job.marked then return end
  job.marked = true
  store({ job })
end

-- Lets a job be one that was not cancelled. Returns its marks and extras as a text.
function marking.clearCancel(id, extra)
  local marks, fields = marking.parse(extra)
  fields.c = nil
  return marking.write(id, marks - CANCELLED, fields)
end
