-- The same as complete.sql for queues with children. Children are completed too. Sets _sent: whether it wrote messages to parents. The numbers of
-- the messages are drawn when all jobs are written, and so locked.
-- States: 3 active.
-- MARK.child = 2
_base := nextval('places');
WITH outcomes AS (
  -- include: outcomes-by-id
), o AS MATERIALIZED (
  SELECT o.*, held.at FROM outcomes o,
    LATERAL (
      SELECT ctid AS at FROM jobs j
      WHERE j.queue = _queue AND j.id = o.id AND j.state + 0 = 3 AND j.session = _session AND j.fence = o.fence AND j.marks IN (0, 2)
        AND j.lock_key IS NULL
      OFFSET 0
    ) held
), moved AS (
  UPDATE jobs j
  SET ord = _base + o.n, returnvalue = o.said,
    -- include: completed
  FROM o WHERE (SELECT count(*) FROM o) = _many AND j.ctid = o.at AND j.state + 0 = 3 AND j.session = _session AND j.fence = o.fence
    AND j.marks IN (0, 2) AND j.lock_key IS NULL
  RETURNING o.n, o.id, o.said, CASE WHEN j.marks = 2 THEN j.extras::json -> 'p' END AS parents
), sent AS (
  INSERT INTO outbox (queue, to_queue, body)
  SELECT _queue, p ->> 'queue', child_message(p ->> 'id', json_agg(child_item(m.id, 'processed', m.said, NULL, NULL)))
  FROM moved m, json_array_elements(m.parents) p GROUP BY p ->> 'queue', p ->> 'id' RETURNING queue
)
SELECT array_agg(n ORDER BY n), count(*), EXISTS (SELECT FROM sent) INTO _done, _finished, _sent FROM moved;
IF _sent THEN PERFORM set_config('holdfast.sent', '1', true); END IF;
