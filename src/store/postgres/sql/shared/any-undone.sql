-- True if a schedule of the queue `q` owes a job, or the queue sends or gets a message that is not delivered. Queues without schedules,
-- families and letters read nothing for it.
q.scheduled AND (
  (SELECT version FROM schedules WHERE queue = q.queue AND state = 'owing' ORDER BY version LIMIT 1) IS NOT NULL
  OR (SELECT number FROM outbox WHERE queue = q.queue ORDER BY number LIMIT 1) IS NOT NULL
  OR (SELECT number FROM outbox WHERE to_queue = q.name ORDER BY number LIMIT 1) IS NOT NULL
)
