-- Metrics: finished jobs by the minute.

-- name: count_minutes
-- Adds finished jobs to the metrics. _finished: [minute, completed, failed] for each row of the journal.
-- Called by: fold.
CREATE FUNCTION count_minutes(_queue int, _points int, _finished json) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  INSERT INTO metrics
  SELECT _queue, k.kind, (f ->> 0)::int, sum((f ->> k.place)::int) FROM json_array_elements(_finished) f,
    (VALUES ('completed', 1), ('failed', 2)) k(kind, place)
  WHERE (f ->> k.place)::int > 0 GROUP BY k.kind, (f ->> 0)::int
  ON CONFLICT (queue, kind, minute) DO UPDATE SET count = metrics.count + excluded.count;
  PERFORM trim_metrics(_queue, _points);
END
$body$;

-- name: keep_metrics
-- Sets how many minutes of metrics a queue keeps. Null: it stops counting, and forgets its counts. The caller holds the lock of the
-- queue's row, and then writes the number there. The journal is folded first, under the setting of before.
-- Called by: configure, forget.
CREATE FUNCTION keep_metrics(_queue int, _points int) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  PERFORM fold(_queue);
  IF _points IS NULL THEN
    DELETE FROM metrics WHERE queue = _queue;
  ELSE
    PERFORM trim_metrics(_queue, _points);
  END IF;
END
$body$;

-- name: metrics_of
-- Returns the metrics of one kind: all jobs, how many points are kept, and [minute, jobs] in the order of the minutes; null if the queue
-- does not count. It reads the journal too, in one statement, and folds nothing.
-- Called by: state/minute-counts.ts.
CREATE FUNCTION metrics_of(_name text, _kind text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
BEGIN
  RETURN (
    SELECT json_build_object('count', coalesce(sum(m.count), 0), 'keep', max(q.metric_points),
      'minutes', coalesce(json_agg(json_build_array(m.minute, m.count) ORDER BY m.minute) FILTER (WHERE m.minute >= 0), '[]'))
    FROM queues q
    LEFT JOIN LATERAL (
      SELECT minute, sum(count) AS count
      FROM (
        SELECT minute, count FROM metrics WHERE metrics.queue = q.queue AND kind = _kind
        UNION ALL
        SELECT minute, CASE _kind WHEN 'completed' THEN completions ELSE failures END FROM journal
        WHERE journal.queue = q.queue AND journal.number >= q.journal_from AND minute IS NOT NULL
          AND CASE _kind WHEN 'completed' THEN completions ELSE failures END > 0
      ) counted
      GROUP BY minute
    ) m ON true
    WHERE q.name = _name AND q.metric_points IS NOT NULL GROUP BY q.queue
  );
END
$body$;

-- name: trim_metrics
-- Keeps as many points of each kind before its last minute. Adds the older ones to the row with minute -1, and makes the first point a row.
-- The caller holds the lock of the queue's row.
-- Called by: count_minutes, keep_metrics.
CREATE FUNCTION trim_metrics(_queue int, _points int) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _one record;
BEGIN
  FOR _one IN
    SELECT k.kind, (SELECT minute FROM metrics m WHERE m.queue = _queue AND m.kind = k.kind ORDER BY minute DESC LIMIT 1) - _points AS first
    FROM unnest('{completed,failed}'::text[]) k(kind)
  LOOP
    CONTINUE WHEN NOT EXISTS (
      SELECT FROM metrics WHERE queue = _queue AND kind = _one.kind AND minute >= 0 AND minute < _one.first
    );
    WITH gone AS (
      DELETE FROM metrics WHERE queue = _queue AND kind = _one.kind AND minute >= 0 AND minute < _one.first RETURNING count
    )
    INSERT INTO metrics SELECT _queue, _one.kind, -1, sum(count) FROM gone UNION ALL SELECT _queue, _one.kind, _one.first, 0
    ON CONFLICT (queue, kind, minute) DO UPDATE SET count = metrics.count + excluded.count;
  END LOOP;
END
$body$;
