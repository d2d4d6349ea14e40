-- Gives a job that existed before the call further parents. A link that exists stays as it is. A job that has finished sends its end to the
-- parents that are new to it. The caller holds the locks of the job and of the parents.
-- Called by: link-family.sql.
-- States: 4 completed, 5 failed.
-- MARK.child = 2
CREATE FUNCTION adopt_child(_queue int, _id text, _parents jsonb) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _job record;
  _fresh jsonb;
BEGIN
  SELECT state, extras, returnvalue, failed_reason INTO _job FROM jobs WHERE queue = _queue AND id = _id;
  UPDATE jobs
  SET marks = marks | 2, extras = coalesce(extras::jsonb, '{}') || jsonb_build_object(
    'p', (
      SELECT jsonb_agg(p ORDER BY n)
      FROM (
        SELECT DISTINCT ON (p ->> 'queue', p ->> 'id') p, n
        FROM jsonb_array_elements(coalesce(_job.extras::jsonb -> 'p', '[]') || _parents) WITH ORDINALITY o(p, n)
        ORDER BY p ->> 'queue', p ->> 'id', n
      ) o
    )
  )
  WHERE queue = _queue AND id = _id;
  SELECT jsonb_agg(p) INTO _fresh
  FROM jsonb_array_elements(_parents) p, LATERAL (SELECT queue FROM queues WHERE name = p ->> 'queue' OFFSET 0) q
  WHERE NOT EXISTS (
    SELECT FROM links l WHERE l.queue = q.queue AND l.parent = p ->> 'id' AND l.child_queue = _queue AND l.child = _id OFFSET 0
  );
  IF _fresh IS NULL THEN RETURN; END IF;
  WITH made AS (
    INSERT INTO links (queue, parent, child_queue, child, since, sent)
    SELECT q.queue, p ->> 'id', _queue, _id, m.number, m.number
    FROM jsonb_array_elements(_fresh) p, LATERAL (SELECT queue FROM queues WHERE name = p ->> 'queue' OFFSET 0) q,
      (SELECT nextval('messages') AS number) m
    ON CONFLICT (queue, parent, child_queue, child) DO NOTHING RETURNING queue, parent
  )
  INSERT INTO families (queue, parent, pending) SELECT queue, parent, 1 FROM made
  ON CONFLICT (queue, parent) DO UPDATE SET pending = families.pending + excluded.pending;
  IF _job.state + 0 IN (4, 5) THEN
    PERFORM send_to_parents(
      _queue, json_build_array(kin_of(_id, json_build_object('p', _fresh)::text, _job.state, _job.returnvalue, _job.failed_reason)), false
    );
  END IF;
END
$body$;
