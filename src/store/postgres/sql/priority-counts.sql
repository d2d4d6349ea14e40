-- Returns the numbers of waiting jobs with these priorities. The jobs without one are counted by the queue, the others one by one.
-- Called by: inspect.ts.
-- States: -2 grouped, -1 behind, 0 keyed, 1 waiting.
CREATE FUNCTION priority_counts(_name text, _priorities bigint[]) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _plain bigint := (SELECT waiting FROM counts_of(_queue));
BEGIN
  RETURN (
    SELECT json_agg(
      CASE WHEN priority = 0 THEN coalesce(_plain, 0) ELSE (
        SELECT count(*) FROM unnest('{-2,-1,0,1}'::smallint[]) s(state),
          LATERAL (
            SELECT FROM jobs j WHERE j.queue = _queue AND j.state <= 1 AND j.state = s.state AND j.priority = asked.priority
            ORDER BY j.ord OFFSET 0
          ) j
      ) END
      ORDER BY n
    )
    FROM unnest(_priorities) WITH ORDINALITY asked(priority, n)
  );
END
$body$;
