-- Keeps as many points of each kind before its last minute. Adds the older ones to the row with minute -1, and makes the first point a row.
-- The caller holds the lock of the queue's row.
-- Called by: count-minutes.sql, keep-metrics.sql.
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
