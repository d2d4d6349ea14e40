-- Acquires named locks, or takes places among their waiters.
-- Row locks are taken in this order: sessions by their ids, jobs by their ids, names. A transaction that holds a name waits for nothing
-- but another name. Places are deleted only if their row is not locked: a place that is left over does not count without its session.
-- Called by: named-lock.ts.
CREATE FUNCTION acquire(
  _name text, _names text[], _tokens text[], _sessions text[], _keeps float8[]
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _now bigint := floor(clock_ms());
  _ended text[];
  _replies text[] := '{}';
  _mark bigint[];
  _reply text;
  _one record;
BEGIN
  IF _queue IS NULL THEN RETURN to_json(array_fill(json_build_array('gone'), ARRAY[cardinality(_names)])); END IF;
  FOR _one IN
    SELECT *, name = lag(name) OVER (ORDER BY name COLLATE "C", n) AS again
    FROM unnest(_names, _tokens, _sessions, _keeps) WITH ORDINALITY o(name, token, session, keep, n) ORDER BY name COLLATE "C", n
  LOOP
    IF _one.again IS NOT TRUE THEN _mark := '{0,0}'; END IF;
    SELECT * INTO _mark, _reply FROM glance_at_line(_queue, _now, _one.name, _one.token, _one.session, _one.keep, _mark);
    _replies[_one.n] := _reply;
    EXIT WHEN _reply IS NULL;
  END LOOP;
  IF _reply IS NOT NULL THEN RETURN '[' || array_to_string(_replies, ',') || ']'; END IF;
  _replies := '{}';
  _ended := lock_sessions(_queue, _now, _names, _sessions);
  PERFORM lock_names(_queue, _names);
  IF (SELECT fenced_on FROM queues WHERE queue = _queue) IS DISTINCT FROM pg_postmaster_start_time() THEN
    PERFORM lift_fences(_queue);
  END IF;
  _now := floor(clock_ms());
  FOR _one IN
    SELECT *, name = lag(name) OVER (ORDER BY name COLLATE "C", n) AS again
    FROM unnest(_names, _tokens, _sessions, _keeps) WITH ORDINALITY o(name, token, session, keep, n) ORDER BY name COLLATE "C", n
  LOOP
    IF _one.again IS NOT TRUE THEN _mark := NULL; END IF;
    SELECT * INTO _mark, _reply
    FROM acquire_in_line(_queue, _now, _one.name, _one.token, _one.session, _one.keep, _ended, _mark);
    _replies[_one.n] := _reply;
  END LOOP;
  DELETE FROM named WHERE queue = _queue AND name = ANY (_names) AND token IS NULL;
  RETURN '[' || array_to_string(_replies, ',') || ']';
END
$body$;
