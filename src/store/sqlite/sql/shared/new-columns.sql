-- Columns of every new job.
queue, id, state, priority, ord, dueAt, delay, addedAt, timestamp, name, opts, data, lockKey
