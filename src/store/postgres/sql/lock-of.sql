-- Returns the lock of a job.
-- Called by: locks-of.sql, older versions.
-- States: 3 active.
CREATE FUNCTION lock_of(_name text, _job text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
BEGIN
  -- A lock that was extended lives as long as its session, and at least until its own end.
  RETURN (
    SELECT json_build_object(
      'session', j.session, 'fence', j.fence, 'owner',
      json_build_object('host', s.host, 'pid', s.pid, 'name', s.name, 'instance', s.instance), 'since', j.processed_on,
      'endsInMs',
      CASE WHEN j.timed OR s.reaped > 0 THEN coalesce(j.ends_at, s.expires_at)
        ELSE greatest(j.ends_at, s.expires_at) END - floor(clock_ms())::bigint
    )
    FROM jobs j
    LEFT JOIN sessions s ON s.queue = j.queue AND s.id = j.session WHERE j.queue = _queue AND j.id = _job AND j.state + 0 = 3
  );
END
$body$;
