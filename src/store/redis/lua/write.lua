-- use: clock tools counters queue jobs writes
-- Writes data, progress and logs of jobs, and records events of users. A write with a token applies only if that token owns the job now.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: for each write: kind (d data, p progress, l log row, c clear logs, e event of a user), job id (of an event: its name), `=` and the
--   token ('': no owner's write), text, keep (the newest log rows to keep; '': all).
-- Returns for each write a letter (d done, l lost, m missing), and the number of log rows after a write to logs, else -1.
local replies = writeAll()
save()
return replies
