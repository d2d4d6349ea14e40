-- The columns that claimed-arrays.sql packs.
jobs.id, jobs.name, jobs.data, jobs.opts, jobs.priority, jobs.timestamp, jobs.attempts_made, jobs.attempts_started,
jobs.stalled_counter, jobs.processed_on, jobs.failed_reason, jobs.stacktrace, jobs.progress, jobs.fence, jobs.marks, jobs.extras
