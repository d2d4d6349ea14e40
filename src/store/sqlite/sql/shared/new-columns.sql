-- Columns of every new job. record.ts writes those of the second line.
queue, id, state, ord, dueAt, addedAt,
priority, delay, timestamp, name, opts, data,
-- include: key
