-- Returns the open sessions of a queue.
-- Called by: inspect.ts.
-- States: 3 active.
CREATE FUNCTION sessions_of(_name text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
BEGIN
  RETURN (
    SELECT json_agg(
      json_build_object(
        'queue', _name, 'id', id, 'owner', json_build_object('host', host, 'pid', pid, 'name', name, 'instance', instance),
        'durationMs', duration_ms, 'since', since, 'renewals', renewals, 'expiresInMs', expires_at - floor(clock_ms())::bigint,
        'suspected', suspected, 'slots', slots, 'locks',
        (
          SELECT count(*) FROM (
            SELECT FROM jobs j WHERE j.queue = _queue AND j.state = 3 AND j.session = s.id ORDER BY fence
          ) held
        )
      )
      ORDER BY since, id
    )
    FROM sessions s WHERE queue = _queue AND reaped = 0
  );
END
$body$;
