-- Adds finished jobs to the metrics. _finished: [minute, completed, failed] for each row of the journal.
-- Called by: fold.sql.
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
