-- Returns the metrics of one kind: all jobs, how many points are kept, and [minute, jobs] in the order of the minutes; null if the queue does
-- not count. It reads the journal too, in one statement, and folds nothing.
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
