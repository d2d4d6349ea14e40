-- Acquires named locks, or takes places among their waiters.
-- Row locks are taken in this order: sessions by their ids, jobs by their ids, names. A transaction that holds a name waits for nothing
-- but another name. Places are deleted only if their row is not locked: a place that is left over does not count without its session.
-- Called by: named-lock.ts.
-- SPARE = 1.125: each place is kept longer than requested by this factor, so that waiters that are woken in vain have nothing to write.
CREATE FUNCTION acquire(
  _name text, _names text[], _tokens text[], _sessions text[], _keeps float8[]
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _now bigint := floor(clock_ms());
  _ended text[] := '{}';
  _replies text[] := '{}';
  _suspected boolean;
  _one record;
  _hold record;
  _place bigint;
  _ahead bigint;
BEGIN
  IF _queue IS NULL THEN RETURN to_json(array_fill(json_build_array('gone'), ARRAY[cardinality(_names)])); END IF;
  _replies := ARRAY(
    SELECT glance(_queue, _now, name, token, session, keep)
    FROM unnest(_names, _tokens, _sessions, _keeps) WITH ORDINALITY o(name, token, session, keep, n) ORDER BY n
  );
  IF array_position(_replies, NULL) IS NULL THEN RETURN '[' || array_to_string(_replies, ',') || ']'; END IF;
  _replies := '{}';
  -- Against being closed or reaped meanwhile; and those that may have to be ended are locked before any name is.
  FOR _one IN
    SELECT id, bool_or(expired) AS expired FROM (
      SELECT session AS id, false AS expired FROM unnest(_sessions) session
      UNION ALL
      SELECT n.session, true FROM unnest(_names) o(name)
      JOIN LATERAL (SELECT session FROM named WHERE queue = _queue AND named.name = o.name OFFSET 0) n ON true
      JOIN LATERAL (SELECT * FROM sessions s WHERE s.queue = _queue AND s.id = n.session OFFSET 0) s ON true
      WHERE NOT (s.reaped + 0 = 0 AND s.expires_at > _now)
    ) both_kinds
    GROUP BY id ORDER BY id
  LOOP
    IF _one.expired THEN
      PERFORM FROM sessions WHERE queue = _queue AND id = _one.id FOR UPDATE;
      _ended := _ended || _one.id;
    ELSE
      SELECT suspected INTO _suspected FROM sessions WHERE queue = _queue AND id = _one.id FOR KEY SHARE;
      IF _suspected THEN PERFORM clear_suspicion(_queue, _one.id, _now); END IF;
    END IF;
  END LOOP;
  PERFORM lock_names(_queue, _names);
  IF (SELECT fenced_on FROM queues WHERE queue = _queue) IS DISTINCT FROM pg_postmaster_start_time() THEN
    PERFORM lift_fences(_queue);
  END IF;
  _now := floor(clock_ms());
  FOR _one IN SELECT * FROM unnest(_names, _tokens, _sessions, _keeps) WITH ORDINALITY o(name, token, session, keep, n) LOOP
    PERFORM FROM sessions s WHERE queue = _queue AND id = _one.session AND s.reaped + 0 = 0 AND s.expires_at > _now;
    IF NOT FOUND THEN
      _replies := _replies || '["gone"]'::text;
      CONTINUE;
    END IF;
    SELECT n.token, n.session, n.fence, s.expires_at, coalesce(s.reaped + 0 = 0 AND s.expires_at > _now, false) AS lives
    INTO _hold FROM named n
    LEFT JOIN LATERAL (SELECT * FROM sessions s WHERE s.queue = _queue AND s.id = n.session OFFSET 0) s ON true
    WHERE n.queue = _queue AND n.name = _one.name;
    IF NOT _hold.lives AND _hold.session <> ALL (_ended) THEN
      -- It has expired since, or came to hold it since. A transaction that has its row at this moment may be about to renew it.
      PERFORM FROM sessions WHERE queue = _queue AND id = _hold.session FOR UPDATE SKIP LOCKED;
      IF FOUND THEN
        SELECT s.expires_at, s.reaped + 0 = 0 AND s.expires_at > _now INTO _hold.expires_at, _hold.lives FROM sessions s
        WHERE queue = _queue AND id = _hold.session;
      ELSE
        _hold.lives := EXISTS (SELECT FROM sessions WHERE queue = _queue AND id = _hold.session);
      END IF;
    END IF;
    IF _hold.lives AND _hold.token = _one.token THEN
      _replies := _replies || json_build_array('held', _hold.fence)::text;
      CONTINUE;
    END IF;
    DELETE FROM lock_places
    WHERE ctid = ANY (
      ARRAY(
        SELECT ctid FROM lock_places WHERE queue = _queue AND name = _one.name AND kept_until <= _now
        ORDER BY place FOR UPDATE SKIP LOCKED
      )
    );
    _place := (
      SELECT place FROM lock_places WHERE queue = _queue AND name = _one.name AND token = _one.token AND kept_until > _now
      ORDER BY place LIMIT 1
    );
    _ahead :=
      -- include: waiters-ahead
    ;
    IF NOT _hold.lives AND _ahead = 0 THEN
      -- A late renewal must not bring back the former holder, because that holder would trust its lock again.
      UPDATE sessions SET reaped = 1 WHERE queue = _queue AND id = _hold.session AND reaped + 0 = 0;
      UPDATE named SET token = _one.token, session = _one.session, fence = nextval('fences'), since = _now
      WHERE queue = _queue AND name = _one.name RETURNING fence INTO _hold.fence;
      DELETE FROM lock_places WHERE queue = _queue AND name = _one.name AND token = _one.token;
      _replies := _replies || json_build_array('held', _hold.fence)::text;
      CONTINUE;
    END IF;
    IF _one.keep = 0 THEN
      DELETE FROM lock_places WHERE queue = _queue AND name = _one.name AND token = _one.token;
    ELSIF _place IS NULL THEN
      INSERT INTO lock_places (queue, name, token, session, kept_until)
      VALUES (_queue, _one.name, _one.token, _one.session, ceil(clock_ms() + _one.keep * 1.125));
    ELSE
      UPDATE lock_places SET kept_until = ceil(clock_ms() + _one.keep * 1.125)
      WHERE queue = _queue AND name = _one.name AND place = _place;
    END IF;
    _replies := _replies
      || json_build_array('taken', NULL, _ahead, CASE WHEN _hold.lives THEN greatest(0, _hold.expires_at - _now) END)::text;
  END LOOP;
  DELETE FROM named WHERE queue = _queue AND name = ANY (_names) AND token IS NULL;
  RETURN '[' || array_to_string(_replies, ',') || ']';
END
$body$;
