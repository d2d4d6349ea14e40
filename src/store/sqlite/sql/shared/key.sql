-- The column of a job's key: the lock key that its user chose, or the key of its group (shared/of-group.sql).
lockKey
