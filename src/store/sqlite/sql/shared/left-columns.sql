-- Columns of a job that leaves a state (LeftRow in record.ts). A job of a group has no lock key: its first mark is set.
job, id, priority, logNext, CASE marks & 1 WHEN 0 THEN
-- include: key
END, marks, extras
