-- Named locks, and the waiters for them.

-- name: acquire
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

-- name: acquire_in_line
-- Decides about one request for a named lock, under the lock of the name. _ended: sessions that the caller has locked because they had
-- expired. _mark: see waiters_before; null in the first request of the call for this name. It comes back with the place of this request.
-- Called by: acquire.
-- SPARE = 1.125: each place is kept longer than requested by this factor, so that waiters that are woken in vain have nothing to write.
CREATE FUNCTION acquire_in_line(
  _queue int, _now bigint, _name text, _token text, _session text, _keep float8, _ended text[], INOUT _mark bigint[], OUT _reply text
) LANGUAGE plpgsql AS $body$
DECLARE
  _hold record;
  _place bigint;
  _ahead bigint;
BEGIN
  PERFORM FROM sessions s WHERE queue = _queue AND id = _session AND s.reaped + 0 = 0 AND s.expires_at > _now;
  IF NOT FOUND THEN
    _reply := '["gone"]';
    RETURN;
  END IF;
  SELECT n.token, n.session, n.fence, s.expires_at, coalesce(s.reaped + 0 = 0 AND s.expires_at > _now, false) AS lives
  INTO _hold FROM named n
  LEFT JOIN LATERAL (SELECT * FROM sessions s WHERE s.queue = _queue AND s.id = n.session OFFSET 0) s ON true
  WHERE n.queue = _queue AND n.name = _name;
  IF NOT _hold.lives AND _hold.session <> ALL (_ended) THEN
    -- Looks again at a session that has expired since, or came to hold the lock since. A transaction that has its row at this moment may be
    -- about to renew it.
    PERFORM FROM sessions WHERE queue = _queue AND id = _hold.session FOR UPDATE SKIP LOCKED;
    IF FOUND THEN
      SELECT s.expires_at, s.reaped + 0 = 0 AND s.expires_at > _now INTO _hold.expires_at, _hold.lives FROM sessions s
      WHERE queue = _queue AND id = _hold.session;
    ELSE
      _hold.lives := EXISTS (SELECT FROM sessions WHERE queue = _queue AND id = _hold.session);
    END IF;
  END IF;
  IF _hold.lives AND _hold.token = _token THEN
    _reply := json_build_array('held', _hold.fence);
    RETURN;
  END IF;
  IF _mark IS NULL THEN
    PERFORM lapse_places(_queue, _now, _name);
    _mark := '{0,0}';
  END IF;
  _place := (
    SELECT place FROM lock_places WHERE queue = _queue AND name = _name AND token = _token AND kept_until > _now
    ORDER BY place + 0 LIMIT 1
  );
  _ahead := waiters_before(_queue, _now, _name, _place, _mark);
  IF NOT _hold.lives AND _ahead = 0 THEN
    -- A late renewal must not bring back the former holder, because that holder would trust its lock again.
    UPDATE sessions SET reaped = 1 WHERE queue = _queue AND id = _hold.session AND reaped + 0 = 0;
    UPDATE named SET token = _token, session = _session, fence = nextval('fences'), since = _now
    WHERE queue = _queue AND name = _name RETURNING fence INTO _hold.fence;
    DELETE FROM lock_places WHERE queue = _queue AND name = _name AND token = _token;
    _mark := '{0,0}';
    _reply := json_build_array('held', _hold.fence);
    RETURN;
  END IF;
  IF _keep = 0 THEN
    DELETE FROM lock_places WHERE queue = _queue AND name = _name AND token = _token;
    IF FOUND THEN _mark := '{0,0}'; END IF;
  ELSE
    IF _place IS NULL THEN
      INSERT INTO lock_places (queue, name, token, session, kept_until)
      VALUES (_queue, _name, _token, _session, ceil(clock_ms() + _keep * 1.125)) RETURNING place INTO _place;
    ELSE
      UPDATE lock_places SET kept_until = ceil(clock_ms() + _keep * 1.125)
      WHERE queue = _queue AND name = _name AND place = _place;
    END IF;
    _mark := ARRAY[_place, _ahead];
  END IF;
  _reply := json_build_array('taken', NULL, _ahead, CASE WHEN _hold.lives THEN greatest(0, _hold.expires_at - _now) END);
END
$body$;

-- name: glance_at_line
-- The reply to a request that changes nothing: its session holds the lock already, or waits behind others and has asked a moment ago.
-- When a lock comes free, all its waiters ask at once. If each of them locked and wrote, the first waiter would wait for the commits of
-- the others. Null: the request must be decided under the lock of the name.
-- _mark: see waiters_before. It comes back with the place of this request.
-- Called by: acquire.
-- SPARE = 1.125: see acquire_in_line.
CREATE FUNCTION glance_at_line(
  _queue int, _now bigint, _name text, _token text, _session text, _keep float8, INOUT _mark bigint[], OUT _reply text
) LANGUAGE plpgsql AS $body$
DECLARE
  _one record;
  _ahead bigint;
BEGIN
  SELECT _name AS name, n.token, n.fence, s.expires_at, coalesce(s.reaped + 0 = 0 AND s.expires_at > _now, false) AS lives,
    p.place, p.kept_until
  INTO _one
  FROM (
    SELECT FROM sessions s WHERE queue = _queue AND id = _session AND s.reaped + 0 = 0 AND s.expires_at > _now AND NOT suspected
  ) own
  LEFT JOIN LATERAL (SELECT * FROM named WHERE queue = _queue AND named.name = _name OFFSET 0) n ON true
  LEFT JOIN LATERAL (SELECT * FROM sessions s WHERE s.queue = _queue AND s.id = n.session OFFSET 0) s ON true
  LEFT JOIN LATERAL (
    SELECT * FROM lock_places WHERE queue = _queue AND lock_places.name = _name AND token = _token ORDER BY place + 0 LIMIT 1
  ) p ON true;
  IF _one.lives AND _one.token = _token THEN
    _reply := json_build_array('held', _one.fence);
    RETURN;
  END IF;
  IF _keep = 0 OR _one.place IS NULL OR _one.kept_until < _now + _keep THEN RETURN; END IF;
  -- An earlier request asked to keep the place for longer; this request shortens it.
  IF _one.kept_until > _now + _keep * 1.125 + 1 THEN RETURN; END IF;
  _ahead := waiters_before(_queue, _now, _name, _one.place, _mark);
  _mark := ARRAY[_one.place, _ahead];
  IF _one.lives OR _ahead > 0 THEN
    _reply := json_build_array('taken', NULL, _ahead, CASE WHEN _one.lives THEN _one.expires_at - _now END);
  END IF;
END
$body$;

-- name: lock_sessions
-- Locks the sessions of some requests for named locks, so that nothing closes or reaps them meanwhile, and the expired sessions that hold
-- these locks, which may have to be ended. Returns the ids of the latter. Rows of sessions are locked before any name is.
-- Called by: acquire.
CREATE FUNCTION lock_sessions(_queue int, _now bigint, _names text[], _sessions text[]) RETURNS text[] LANGUAGE plpgsql AS $body$
DECLARE
  _ended text[] := '{}';
  _suspected boolean;
  _one record;
BEGIN
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
  RETURN _ended;
END
$body$;

-- name: lock_names
-- Locks the rows of the names. A free name has no row to lock, so it gets one until the end of the call.
-- Called by: acquire, let_go.
CREATE FUNCTION lock_names(_queue int, _names text[]) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _one text;
BEGIN
  FOR _one IN SELECT DISTINCT name COLLATE "C" AS name FROM unnest(_names) name ORDER BY name LOOP
    LOOP
      INSERT INTO named (queue, name) VALUES (_queue, _one) ON CONFLICT DO NOTHING;
      EXIT WHEN FOUND;
      PERFORM FROM named WHERE queue = _queue AND name = _one FOR UPDATE;
      EXIT WHEN FOUND;
    END LOOP;
  END LOOP;
END
$body$;

-- name: lapse_places
-- Deletes the places of a line that are no longer kept.
-- Called by: acquire_in_line.
CREATE FUNCTION lapse_places(_queue int, _now bigint, _name text) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  DELETE FROM lock_places
  WHERE ctid = ANY (
    ARRAY(
      SELECT ctid FROM lock_places WHERE queue = _queue AND name = _name AND kept_until <= _now ORDER BY place FOR UPDATE SKIP LOCKED
    )
  );
END
$body$;

-- name: waiters_before
-- Returns the number of waiters in line before a place, or of all waiters (_place: null). _mark: a place of the same line and the number of
-- waiters before it, so that the requests of one call count each part of the line once.
-- Called by: glance_at_line, acquire_in_line.
CREATE FUNCTION waiters_before(_queue int, _now bigint, _name text, _place bigint, _mark bigint[]) RETURNS bigint LANGUAGE plpgsql AS $body$
DECLARE
  _from bigint := 0;
  _before bigint := 0;
BEGIN
  IF _place IS NULL OR _place >= _mark[1] THEN
    _from := _mark[1];
    _before := _mark[2];
  END IF;
  RETURN _before + (
    SELECT count(*) FROM (
      SELECT * FROM lock_places
      WHERE queue = _queue AND name = _name AND place >= _from AND (_place IS NULL OR place < _place) ORDER BY place OFFSET 0
    ) p
    JOIN LATERAL (SELECT * FROM sessions s WHERE s.queue = _queue AND s.id = p.session OFFSET 0) s ON true
    WHERE p.kept_until > _now AND s.reaped + 0 = 0 AND s.expires_at > _now
  );
END
$body$;

-- name: let_go
-- Releases named locks, and gives up places of waiters.
-- Called by: named-lock.ts.
CREATE FUNCTION let_go(_name text, _names text[], _tokens text[]) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _now bigint;
  _replies boolean[] := '{}';
  _freed boolean;
  _one record;
BEGIN
  IF _queue IS NULL THEN RETURN to_json(array_fill(false, ARRAY[cardinality(_names)])); END IF;
  PERFORM lock_names(_queue, _names);
  _now := floor(clock_ms());
  FOR _one IN SELECT * FROM unnest(_names, _tokens) WITH ORDINALITY o(name, token, n) LOOP
    UPDATE named SET token = NULL, session = NULL WHERE queue = _queue AND name = _one.name AND token = _one.token;
    _freed := FOUND;
    DELETE FROM lock_places WHERE queue = _queue AND name = _one.name AND token = _one.token AND kept_until > _now;
    _replies := _replies || (_freed OR FOUND);
  END LOOP;
  DELETE FROM named WHERE queue = _queue AND name = ANY (_names) AND token IS NULL;
  RETURN to_json(_replies);
END
$body$;

-- name: free_names
-- Deletes up to _limit locks and places of a session that the caller has locked. Skips rows that another transaction holds. Returns how
-- many.
-- Called by: close_sessions, reap.
CREATE FUNCTION free_names(_queue int, _session text, _limit int) RETURNS int LANGUAGE plpgsql AS $body$
DECLARE
  _freed int;
  _left int;
BEGIN
  DELETE FROM named
  WHERE ctid = ANY (
    ARRAY(SELECT ctid FROM named WHERE queue = _queue AND session = _session ORDER BY name LIMIT _limit FOR UPDATE SKIP LOCKED)
  );
  GET DIAGNOSTICS _freed = ROW_COUNT;
  DELETE FROM lock_places
  WHERE ctid = ANY (
    ARRAY(
      SELECT ctid FROM lock_places WHERE queue = _queue AND session = _session
      ORDER BY place LIMIT _limit - _freed FOR UPDATE SKIP LOCKED
    )
  );
  GET DIAGNOSTICS _left = ROW_COUNT;
  RETURN _freed + _left;
END
$body$;

-- name: named_locks
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
            -- The lock waiters of a name in their order. A place counts while it is kept and its session lives. An expired session may
            -- still be renewed, and then its places count again.
            SELECT * FROM (SELECT * FROM lock_places WHERE queue = _queue AND name = _one.name ORDER BY place OFFSET 0) p
            JOIN LATERAL (SELECT * FROM sessions s WHERE s.queue = _queue AND s.id = p.session OFFSET 0) s ON true
            WHERE p.kept_until > _now AND s.reaped + 0 = 0 AND s.expires_at > _now
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
