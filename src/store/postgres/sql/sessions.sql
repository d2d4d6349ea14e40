-- Sessions: opening, renewing, closing, and the suspicion that their owners are dead.

-- name: open_session
-- Opens a session. `sessions.reaped`: 0 = open. 1 = reaped, and locks that died with it are still to be handed back. 2 = kept only
-- because of locks with their own expiry, which need its owner and its maxStalls. A session that holds nothing more is deleted.
-- `sessions.reaped`: 0 = open. 1 = reaped, and locks that died with it are still to be handed back. 2 = kept only because of locks with
-- their own expiry, which need its owner and its maxStalls. A session that holds nothing more is deleted.
-- Called by: session.ts.
-- RAISED.sessionExists = HF002
CREATE FUNCTION open_session(
  _name text, _id text, _host text, _pid float8, _owner text, _instance text, _duration float8,
  _max_stalls float8, _slots float8, _grace float8, _presence int, _vouched int
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _clock float8 := clock_ms();
BEGIN
  INSERT INTO sessions (
    queue, id, host, pid, name, instance, presence, vouched, duration_ms, max_stalls, slots, grace_ms, since, expires_at, look_at
  )
  VALUES (
    queue_of(_name), _id, _host, _pid, _owner, _instance, _presence, _vouched, _duration, _max_stalls, _slots, _grace,
    floor(_clock), ceil(_clock + _duration), ceil(_clock + _duration)
  )
  ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'Session % was opened before: give every session an id of its own.', _id USING ERRCODE = 'HF002';
  END IF;
  RETURN 'null';
END
$body$;

-- name: renew
-- Renews several sessions.
-- Called by: session.ts.
CREATE FUNCTION renew(
  _names text[], _ids text[], _acked bigint[], _slots float8[]
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _replies text[] := array_fill('null'::text, ARRAY[cardinality(_ids)]);
  _one record;
  _queue int;
  _revoked boolean;
BEGIN
  FOR _one IN
    SELECT q.queue, r.* FROM unnest(_names, _ids, _acked, _slots) WITH ORDINALITY r(name, id, acked, slots, n)
    JOIN queues q USING (name) ORDER BY q.queue, r.id COLLATE "C", r.n
  LOOP
    UPDATE sessions s SET
      -- include: renewed
      slots = coalesce(_one.slots, s.slots)
    WHERE s.queue = _one.queue AND s.id = _one.id AND s.reaped + 0 = 0
    RETURNING s.queue, EXISTS (SELECT FROM revocations v WHERE v.queue = s.queue AND v.session = s.id) INTO _queue, _revoked;
    CONTINUE WHEN NOT FOUND;
    _replies[_one.n] := CASE WHEN _revoked THEN tell_revocations(_queue, _one.id, _one.acked) ELSE '[]' END;
  END LOOP;
  RETURN '[' || array_to_string(_replies, ',') || ']';
END
$body$;

-- name: renew_one
-- Renews one session: a worker process has one renewer, and most processes have one worker.
-- Gain: without it, a renewal takes 1.16 × the processor time (node bench/fast-paths.mjs renew_one).
-- Called by: session.ts.
CREATE FUNCTION renew_one(_name text, _id text, _acked bigint, _slots float8) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int;
  _revoked boolean;
BEGIN
  UPDATE sessions s SET
    -- include: renewed
    slots = coalesce(_slots, s.slots)
  WHERE s.queue = (SELECT queue FROM queues WHERE name = _name) AND s.id = _id AND s.reaped + 0 = 0
  RETURNING s.queue, EXISTS (SELECT FROM revocations v WHERE v.queue = s.queue AND v.session = s.id) INTO _queue, _revoked;
  IF _revoked THEN RETURN tell_revocations(_queue, _id, _acked); END IF;
  RETURN CASE WHEN FOUND THEN '[]' ELSE 'null' END;
END
$body$;

-- name: close_sessions
-- Hands back everything in one call. It locks all sessions first, then jobs, then names: every verb takes locks in this order.
-- Called by: session.ts.
-- States: 3 active.
CREATE FUNCTION close_sessions(_names text[], _ids text[], _charged boolean) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _clock float8 := clock_ms();
  _one record;
  _queues int[] := '{}';
  _sessions text[] := '{}';
  _held text[];
  _limits float8[];
  _losses text[];
BEGIN
  FOR _one IN
    SELECT DISTINCT q.queue, r.id COLLATE "C" AS id FROM unnest(_names, _ids) r(name, id)
    JOIN queues q USING (name) ORDER BY queue, id
  LOOP
    PERFORM FROM sessions WHERE queue = _one.queue AND id = _one.id FOR UPDATE;
    IF FOUND THEN
      _queues := _queues || _one.queue;
      _sessions := _sessions || _one.id;
    END IF;
  END LOOP;
  FOR _one IN SELECT queue, array_agg(id) AS ids FROM unnest(_queues, _sessions) r(queue, id) GROUP BY queue ORDER BY queue LOOP
    _held := ARRAY(
      SELECT j.id FROM unnest(_one.ids) o(id),
        LATERAL (SELECT id, fence FROM jobs WHERE queue = _one.queue AND state = 3 AND session = o.id ORDER BY fence OFFSET 0) j
    );
    PERFORM FROM (SELECT DISTINCT id FROM unnest(_held) id ORDER BY id) o,
      LATERAL (SELECT FROM jobs WHERE queue = _one.queue AND id = o.id FOR UPDATE) j;
    SELECT array_agg(h.id), array_agg(h.max_stalls), array_agg(h.loss) INTO _held, _limits, _losses
    FROM (
      SELECT j.id, s.max_stalls, s.loss FROM unnest(_one.ids) o(id),
        LATERAL (SELECT id, fence FROM jobs WHERE queue = _one.queue AND state = 3 AND session = o.id ORDER BY fence OFFSET 0) j
      JOIN LATERAL (
        SELECT max_stalls, CASE WHEN _charged THEN loss_of(owner, 'exit') END AS loss FROM sessions owner
        WHERE owner.queue = _one.queue AND owner.id = o.id
      ) s ON true
      ORDER BY j.fence
    ) h;
    IF _held IS NOT NULL THEN PERFORM hand_back(_one.queue, _clock, _held, CASE WHEN _charged THEN _limits END, _losses); END IF;
    PERFORM FROM (
      SELECT n.name FROM unnest(_one.ids) o(id),
        LATERAL (SELECT name FROM named WHERE queue = _one.queue AND session = o.id ORDER BY name OFFSET 0) n
      ORDER BY n.name OFFSET 0
    ) o, LATERAL (SELECT FROM named WHERE queue = _one.queue AND name = o.name FOR UPDATE) n;
    DELETE FROM named WHERE queue = _one.queue AND session = ANY (_one.ids);
    PERFORM free_names(_one.queue, id, 2147483647) FROM unnest(_one.ids) id;
    DELETE FROM sessions WHERE queue = _one.queue AND id = ANY (_one.ids);
    DELETE FROM revocations WHERE queue = _one.queue AND session = ANY (_one.ids);
    DELETE FROM callers
    WHERE ctid = ANY (
      ARRAY(SELECT c.ctid FROM callers c WHERE c.queue = _one.queue AND c.id = ANY (_one.ids) FOR UPDATE OF c SKIP LOCKED)
    );
  END LOOP;
  RETURN 'null';
END
$body$;

-- name: forget_session
-- Deletes a session that holds nothing more.
-- Called by: reap.
CREATE FUNCTION forget_session(_queue int, _session text) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  DELETE FROM sessions WHERE queue = _queue AND id = _session;
  DELETE FROM revocations WHERE queue = _queue AND session = _session;
END
$body$;

-- name: sessions_of
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

-- name: tell_revocations
-- Numbers revocations and other notices under the lock of the session. A notice that commits later gets a later number, so none is missed.
-- Called by: renew_one, renew.
CREATE FUNCTION tell_revocations(_queue int, _session text, _acked bigint) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  _last bigint;
  _reply text;
BEGIN
  DELETE FROM revocations WHERE queue = _queue AND session = _session AND number <= _acked;
  SELECT revoked INTO _last FROM sessions WHERE queue = _queue AND id = _session;
  WITH fresh AS MATERIALIZED (
    SELECT ctid AS at, row_number() OVER (ORDER BY told_as) AS nth FROM revocations
    WHERE queue = _queue AND session = _session AND number IS NULL
  ), numbered AS (UPDATE revocations v SET number = _last + fresh.nth FROM fresh WHERE v.ctid = fresh.at RETURNING number)
  SELECT max(number) INTO _last FROM numbered;
  IF _last IS NOT NULL THEN UPDATE sessions SET revoked = _last WHERE queue = _queue AND id = _session; END IF;
  SELECT json_agg(json_build_array(number, job, fence, reason, kind) ORDER BY number) INTO _reply FROM revocations
  WHERE queue = _queue AND session = _session;
  RETURN coalesce(_reply, '[]');
END
$body$;

-- name: attest
-- A process that lives but lost its advisory lock clears the suspicion of its sessions. It names the new lock when it holds one again.
-- Called by: liveness/presence.ts.
CREATE FUNCTION attest(_presence int, _vouched int, _turn int) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
BEGIN
  PERFORM FROM sessions WHERE presence = _presence ORDER BY queue, id FOR NO KEY UPDATE;
  UPDATE sessions
  SET vouched = _vouched, attested = _turn, suspected = false, expires_at = greatest(expires_at, spared_until),
    spared_until = NULL
  WHERE presence = _presence AND reaped = 0 AND attested < _turn;
  RETURN 'null';
END
$body$;

-- name: probe
-- Suspicion has two steps: the first marks the session as suspected, the second sets when it ends. Between them lies a commit that
-- every process can see. So if a process finds its session unsuspected, the session lasts at least for its grace from then on, however
-- long that commit took.
-- The probe tries a shared lock until the end of this call: it blocks neither other probes nor an owner that still holds its lock.
-- Called by: probe.ts.
-- SETTLING_MS = 5000: after a server has started (or another one took over), no session is suspected for this many ms: living processes
--   must reconnect first.
-- ADVISORY.presence = 1214673780
-- SUSPECTED_AT_ONCE = 500: how many processes one probe suspects: each takes an entry in the server's lock table for a moment.
CREATE FUNCTION probe(_name text, _hinted boolean) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _clock float8 := clock_ms();
  _queue int;
  _undone boolean;
  _vouched int[];
  _looking bigint;
  _gone int[];
  _fresh int := 0;
BEGIN
  SELECT q.queue,
    -- include: any-undone
  INTO _queue, _undone FROM queues q WHERE name = _name;
  IF NOT _hinted THEN
    RETURN json_build_array((SELECT count(*) FROM sessions WHERE queue = _queue AND reaped < 2), NULL, 0, _undone);
  END IF;
  SELECT array_agg(vouched), coalesce(sum(sessions), 0) INTO _vouched, _looking
  FROM (
    SELECT vouched, count(*) AS sessions FROM sessions
    WHERE queue = _queue AND reaped = 0 AND NOT suspected AND vouched IS NOT NULL GROUP BY vouched
  ) p;
  IF (SELECT served_by FROM holdfast_schema) IS DISTINCT FROM pg_postmaster_start_time() THEN
    UPDATE holdfast_schema
    SET served_by = pg_postmaster_start_time(), served_since = CASE WHEN served_by IS NULL THEN 0 ELSE _clock END
    WHERE served_by IS DISTINCT FROM pg_postmaster_start_time();
  END IF;
  IF (SELECT served_since FROM holdfast_schema) > _clock - 5000 THEN RETURN json_build_array(_looking, NULL, 0, _undone); END IF;
  PERFORM shorten_suspected(_queue);
  SELECT array_agg(vouched) INTO _gone FROM (
    SELECT vouched FROM unnest(_vouched) vouched WHERE pg_try_advisory_xact_lock_shared(1214673780, vouched) LIMIT 500
  ) p;
  IF _gone IS NOT NULL THEN
    -- One that is being renewed at this moment is no suspect.
    UPDATE sessions SET suspected = true
    WHERE ctid = ANY (
      ARRAY(
        SELECT ctid FROM sessions
        WHERE queue = _queue AND reaped = 0 AND NOT suspected AND vouched IS NOT NULL
          AND vouched = ANY (_gone) FOR NO KEY UPDATE SKIP LOCKED
      )
    );
    GET DIAGNOSTICS _fresh = ROW_COUNT;
  END IF;
  RETURN json_build_array(
    _looking, (SELECT min(expires_at) FROM sessions WHERE queue = _queue AND reaped = 0 AND suspected) - floor(_clock), _fresh,
    _undone
  );
END
$body$;

-- name: clear_suspicion
-- Clears the suspicion of a session that is granted a lock: its owner lives. Otherwise the owner would trust a lock that ends before
-- its time. Returns whether the session is alive.
-- Called by: lock_sessions, claim, settle.
CREATE FUNCTION clear_suspicion(_queue int, _session text, _now bigint) RETURNS boolean LANGUAGE plpgsql AS $body$
BEGIN
  UPDATE sessions SET suspected = false, expires_at = greatest(expires_at, spared_until), spared_until = NULL
  WHERE queue = _queue AND id = _session AND reaped + 0 = 0 AND expires_at > _now;
  RETURN FOUND;
END
$body$;

-- name: shorten_suspected
-- The clock is read in the statement that reads the rows: never before the suspicion was visible to all processes.
-- Called by: probe.
CREATE FUNCTION shorten_suspected(_queue int) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  UPDATE sessions
  SET spared_until = expires_at, expires_at = least(expires_at, ceil(clock + grace_ms)),
    look_at = least(look_at, ceil(clock + grace_ms))
  FROM (SELECT clock_ms() AS clock OFFSET 0) read
  WHERE sessions.ctid = ANY (
    ARRAY(
      SELECT ctid FROM sessions
      WHERE queue = _queue AND reaped = 0 AND suspected AND spared_until IS NULL FOR NO KEY UPDATE SKIP LOCKED
    )
  );
END
$body$;

-- name: unsuspected
-- Returns for each session whether it is open and not suspected and, if the caller asks for _notices, whether it has notices. Not a verb:
-- it is called so often that the settings of a verb would be half of its cost. A few rows by their keys need fewer settings.
-- Called by: probe.ts.
CREATE FUNCTION unsuspected(_names text[], _ids text[], _notices boolean DEFAULT false) RETURNS text LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan TO off
AS $body$
DECLARE
  _replies boolean[] := '{}';
  _noticed boolean[] := '{}';
  _queue int;
BEGIN
  FOR _n IN 1 .. cardinality(_ids) LOOP
    _queue := (SELECT queue FROM queues WHERE name = _names[_n]);
    PERFORM FROM sessions WHERE queue = _queue AND id = _ids[_n] AND reaped + 0 = 0 AND NOT suspected AND expires_at > clock_ms();
    _replies := _replies || FOUND;
    CONTINUE WHEN NOT _notices;
    _noticed := _noticed || EXISTS (SELECT FROM revocations WHERE queue = _queue AND session = _ids[_n]);
  END LOOP;
  RETURN CASE WHEN _notices THEN json_build_array(_replies, _noticed) ELSE array_to_json(_replies) END;
END
$body$;

-- name: unsuspected_alone
-- The fast path of a suspicion check (probe.ts): most checks are for one worker. Returns whether the session is not suspected, and whether
-- it has notices.
-- Gain: without it, a check takes 1.18 to 1.29 × the processor time (node bench/fast-paths.mjs unsuspected).
SELECT EXISTS (
    SELECT FROM sessions s WHERE s.queue = q.queue AND s.id = :id AND s.reaped + 0 = 0 AND NOT s.suspected AND s.expires_at > clock_ms()
  ), EXISTS (SELECT FROM revocations v WHERE v.queue = q.queue AND v.session = :id)
FROM queues q WHERE q.name = :queue

-- part: renewed
-- The new values of a renewed session, before its slots. A renewal moves `look_at` only if the server's clock was set back. Otherwise a
-- session that dies then would be checked only at the old, later time.
expires_at = ceil(clock_ms() + duration_ms), look_at = least(look_at, floor(clock_ms() + duration_ms)),
renewals = renewals + 1, suspected = false, spared_until = NULL,

-- part: lock-session
-- Locks the session against closing and reaping, but not against renewal. Sets _alive.
PERFORM FROM sessions
WHERE queue = _queue AND id = _session AND reaped + 0 = 0 AND expires_at > _now AND NOT suspected FOR KEY SHARE;
_alive := FOUND;
IF NOT _alive THEN _alive := clear_suspicion(_queue, _session, _now); END IF;
