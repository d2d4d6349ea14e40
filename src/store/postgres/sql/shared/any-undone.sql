-- True if the queue `q` has something undone. For queues without schedules, families and letters, the server neither reads nor opens a table for
-- it: it opens the tables of a subquery even if it never runs the subquery.
q.scheduled AND any_undone(q.queue, q.name)
