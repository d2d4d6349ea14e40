-- Returns who holds these named locks.
-- Called by: inspect.ts.
CREATE FUNCTION named_locks(_name text, _names text[]) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _now bigint := floor(clock_ms());
BEGIN
  RETURN (
    SELECT json_agg(
      CASE WHEN n.token IS NOT NULL THEN json_build_object(
        'name', _one.name, 'token', n.token, 'fence', n.fence, 'session', n.session, 'owner',
        json_build_object('host', s.host, 'pid', s.pid, 'name', s.name, 'instance', s.instance), 'since', n.since, 'endsInMs',
        s.expires_at - _now, 'waiting',
        (
          SELECT count(*) FROM (
            -- include: waiters
          ) line
        )
      ) END
      ORDER BY _one.n
    )
    FROM unnest(_names) WITH ORDINALITY _one(name, n)
    LEFT JOIN LATERAL (SELECT * FROM named WHERE queue = _queue AND named.name = _one.name OFFSET 0) n ON true
    LEFT JOIN LATERAL (SELECT * FROM sessions s WHERE s.queue = _queue AND s.id = n.session OFFSET 0) s ON true
  );
END
$body$;
