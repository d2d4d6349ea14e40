-- True if a schedule of the queue `q` owes a job. Queues without schedules read nothing for it.
q.scheduled AND (SELECT version FROM schedules WHERE queue = q.queue AND state = 'owing' ORDER BY version LIMIT 1) IS NOT NULL
