-- Sweeping: what a dead session leaves behind, and the upkeep of a queue.

-- name: sweep
-- Finds dead sessions and expired locks, and hands their jobs back.
-- Upkeep runs only in a call that found nothing dead, because it takes longer.
-- Called by: sweep.ts.
CREATE FUNCTION sweep(_name text, _limit int) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _clock float8 := clock_ms();
  _now bigint := floor(_clock);
  _look record;
  _nothing text := swept('{}', '{}', 0, false);
  _reply text := _nothing;
BEGIN
  -- include: look
  INTO _look FROM queues q WHERE name = _name;
  IF _look.ended OR _look.looked IS NOT NULL THEN
    _reply := reap(_look.queue, _clock, _limit, _look.ended, _look.looked > _now);
  END IF;
  IF _look.upkeep AND _reply = _nothing THEN PERFORM upkeep(_look.queue, _now); END IF;
  RETURN _reply;
END
$body$;

-- name: sweep_look
-- The fast path of a sweep (sweep.ts): most sweeps find nothing, in one statement and without a lock. Returns the queue, whether a lock
-- has ended, whether a session is due for a check, whether that session was renewed, and whether upkeep is due.
-- Gain: without it, a sweep takes 1.35 × the processor time (node bench/fast-paths.mjs sweep_look).
SELECT queue, ended, looked IS NOT NULL, looked > _now, upkeep FROM (SELECT floor(clock_ms())::bigint AS _now OFFSET 0) clock, LATERAL (
  -- include: look
  FROM queues q WHERE name = :queue OFFSET 0
) look

-- name: sweep_reap
-- Hands back what sweep_look has found (sweep.ts).
SELECT reap(:queue, clock_ms(), :limit, :any_ended, :any_renewed), has_sent()

-- name: sweep_upkeep
-- Runs the upkeep that sweep_look has found due (sweep.ts).
SELECT upkeep(:queue, floor(clock_ms())::bigint)

-- name: sweep_ended
-- Ends locks whose own expiry has passed. An extended lock whose session outlived the extension lives as long as the session again.
-- Called by: reap.
CREATE FUNCTION sweep_ended(
  _queue int, _clock float8, _limit int, OUT stalled text[], OUT failed text[], OUT ended int,
  OUT stalled_by text[], OUT failed_by text[]
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  _now bigint := floor(_clock);
  _ended record;
  _alive text[];
BEGIN
  SELECT array_agg(at) AS rows, array_agg(DISTINCT session) FILTER (WHERE NOT timed) AS sessions, count(*) AS jobs INTO _ended
  FROM (
    SELECT ctid AS at, session, timed FROM jobs
    WHERE queue = _queue AND ends_at IS NOT NULL AND ends_at <= _now AND (xmax = 0 OR untouched(xmax))
      AND (marks = 0 OR entry_free(_queue, id, extras))
    ORDER BY ends_at LIMIT _limit FOR UPDATE SKIP LOCKED
  ) locked;
  ended := _ended.jobs;
  IF ended = 0 THEN RETURN; END IF;
  -- Held as a claim holds them: one that is reaped at this moment would never look at the lock again.
  SELECT array_agg(id) INTO _alive FROM (
    SELECT id FROM sessions WHERE queue = _queue AND id = ANY (_ended.sessions) AND reaped + 0 = 0 FOR KEY SHARE SKIP LOCKED
  ) s;
  UPDATE jobs SET ends_at = NULL WHERE ctid = ANY (_ended.rows) AND NOT timed AND session = ANY (_alive);
  SELECT h.stalled, h.failed, h.stalled_by, h.failed_by INTO stalled, failed, stalled_by, failed_by
  FROM (
    SELECT array_agg(j.id ORDER BY j.ends_at) AS ids, array_agg(coalesce(s.max_stalls, 0) ORDER BY j.ends_at) AS limits,
      array_agg(loss_of(s, CASE WHEN j.timed THEN 'lock-expired' END) ORDER BY j.ends_at) AS losses
    FROM jobs j
    LEFT JOIN sessions s ON s.queue = j.queue AND s.id = j.session
    WHERE j.ctid = ANY (_ended.rows) AND j.ends_at + 0 <= _now AND (j.timed OR s.reaped IS DISTINCT FROM 0)
  ) dead, LATERAL hand_back(_queue, _clock, dead.ids, dead.limits, dead.losses) h
  WHERE dead.ids IS NOT NULL;
END
$body$;

-- name: swept
-- Returns the reply of a sweep.
-- Called by: reap, sweep.
CREATE FUNCTION swept(
  _stalled text[], _failed text[], _reaped int, _more boolean, _lost_by text[] DEFAULT NULL
) RETURNS text LANGUAGE sql STABLE AS $body$
SELECT json_build_object('stalled', _stalled, 'failed', _failed, 'reaped', _reaped, 'more', _more, 'lostBy', _lost_by)::text
$body$;

-- name: reap
-- Ends locks whose own expiry has passed, and dead sessions.
-- `_any_ended`, `_any_renewed`: the findings of `look`, so that the server does not even plan the other branches.
-- Called by: rehearse_reap, sweep_reap, sweep.
-- BITE = 25: how many locks one call ends, or fewer if its limit says so. The first call on a connection takes longer, because the server
--   plans its statements: with 100 locks, and every branch of a sweep in one call, it took 10 ms. See rehearse_reap.
-- LOOKED_AT_ONCE = 200: how many sessions that were renewed since their last check one call moves on: about 2 ms.
CREATE FUNCTION reap(
  _queue int, _clock float8, _limit int, _any_ended boolean, _any_renewed boolean
) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  _now bigint := floor(_clock);
  _most int := least(_limit, 25);
  _left int := _most;
  _seen text[] := '{}';
  _session sessions;
  _dead record;
  _stalled text[] := '{}';
  _failed text[] := '{}';
  _stalled_by text[] := '{}';
  _failed_by text[] := '{}';
  _renewed int := 0;
  _more boolean := true;
BEGIN
  IF _any_ended THEN
    SELECT * INTO _dead FROM sweep_ended(_queue, _clock, _left);
    _stalled := _stalled || _dead.stalled;
    _failed := _failed || _dead.failed;
    _stalled_by := _stalled_by || _dead.stalled_by;
    _failed_by := _failed_by || _dead.failed_by;
    _left := _left - _dead.ended;
  END IF;
  IF _any_renewed THEN
    -- They are to be looked at when they would die now. Before the dead are looked for, who may stand behind them.
    UPDATE sessions SET look_at = expires_at
    WHERE ctid = ANY (
      ARRAY(
        SELECT ctid FROM sessions WHERE queue = _queue AND reaped < 2 AND look_at <= _now AND expires_at > _now
        ORDER BY look_at LIMIT 200 FOR NO KEY UPDATE SKIP LOCKED
      )
    );
    GET DIAGNOSTICS _renewed = ROW_COUNT;
  END IF;
  WHILE _renewed < 200 AND _left > 0 AND cardinality(_seen) < _most LOOP
    SELECT * INTO _session FROM sessions
    WHERE queue = _queue AND reaped < 2 AND look_at <= _now AND expires_at <= _now AND id <> ALL (_seen)
    ORDER BY look_at LIMIT 1 FOR UPDATE SKIP LOCKED;
    EXIT WHEN NOT FOUND;
    _seen := _seen || _session.id;
    -- Hands back the jobs of a dead session, the newest first: when the rest follows in later bites, the oldest will be in front.
    -- States: 3 active.
    SELECT array_agg(id ORDER BY fence) AS ids, array_agg(_session.max_stalls) AS limits, array_agg(loss_of(_session)) AS losses
    INTO _dead
    FROM (
      SELECT id, fence FROM jobs
      WHERE queue = _queue AND state = 3 AND session = _session.id AND ends_at IS NULL AND (xmax = 0 OR untouched(xmax))
        AND (marks = 0 OR entry_free(_queue, id, extras))
      ORDER BY fence DESC LIMIT _left FOR UPDATE SKIP LOCKED
    ) locked;
    IF _dead.ids IS NOT NULL THEN
      _left := _left - cardinality(_dead.ids);
      SELECT * INTO _dead FROM hand_back(_queue, _clock, _dead.ids, _dead.limits, _dead.losses);
      _stalled := _stalled || _dead.stalled;
      _failed := _failed || _dead.failed;
      _stalled_by := _stalled_by || _dead.stalled_by;
      _failed_by := _failed_by || _dead.failed_by;
    END IF;
    IF _left > 0 THEN _left := _left - free_names(_queue, _session.id, _left); END IF;
    -- Decides what becomes of a dead session: it stays while it holds something that a later call ends, or a lock with an end of its own.
    -- States: 3 active.
    -- BITE = 25
    IF _left <= 0 AND _most = 25 THEN
      -- Whether there is more is for the next call to find out.
      UPDATE sessions SET reaped = 1 WHERE queue = _queue AND id = _session.id;
    ELSIF (
        SELECT fence FROM jobs WHERE queue = _queue AND state = 3 AND session = _session.id AND ends_at IS NULL
        ORDER BY fence LIMIT 1
      ) IS NOT NULL OR (
        (SELECT name FROM named WHERE queue = _queue AND session = _session.id ORDER BY name LIMIT 1) IS NOT NULL
          OR (SELECT place FROM lock_places WHERE queue = _queue AND session = _session.id ORDER BY place LIMIT 1) IS NOT NULL
      ) THEN
      UPDATE sessions SET reaped = 1 WHERE queue = _queue AND id = _session.id;
    ELSIF (
        SELECT fence FROM jobs WHERE queue = _queue AND state = 3 AND session = _session.id AND true ORDER BY fence LIMIT 1
      ) IS NOT NULL THEN
      UPDATE sessions SET reaped = 2 WHERE queue = _queue AND id = _session.id;
    ELSE
      PERFORM forget_session(_queue, _session.id);
    END IF;
  END LOOP;
  IF _renewed < 200 THEN
    _more := _left <= 0 OR cardinality(_seen) >= _most;
    -- Sets _more: whether a call with a small limit left something dead.
    -- BITE = 25
    IF _more AND _most < 25 THEN
      _more := (
        (
          SELECT ends_at FROM jobs WHERE queue = _queue AND ends_at IS NOT NULL AND ends_at <= _now ORDER BY ends_at LIMIT 1
        ) IS NOT NULL OR (
          SELECT look_at FROM sessions WHERE queue = _queue AND reaped < 2 AND look_at <= _now AND expires_at <= _now
          ORDER BY look_at LIMIT 1
        ) IS NOT NULL
      );
    END IF;
  END IF;
  RETURN swept(_stalled, _failed, cardinality(_seen), _more, nullif(_stalled_by || _failed_by, '{}'));
END
$body$;

-- name: rehearse_reap
-- Reaps a made-up session, so that the server plans the statements of a real reap while nothing waits for them. Without it, the first
-- call that handed jobs back took 7 ms.
-- Works in queue 0, which never exists, and rolls back. The plans stay with the connection.
-- Called by: sweep.ts.
-- States: 3 active.
-- RAISED.rehearsed = HF003
CREATE FUNCTION rehearse_reap() RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  INSERT INTO sessions (queue, id, host, pid, name, duration_ms, max_stalls, since, expires_at, look_at)
  VALUES (0, '', '', 0, '', 0, 1, 0, 0, 0);
  INSERT INTO jobs (queue, state, priority, ord, added, added_at, delay, timestamp, fence, id, session, name, opts, data)
  VALUES (0, 3, 0, 0, 0, 0, 0, 0, 0, '', '', '', '', '');
  PERFORM reap(0, clock_ms(), 2, false, false);
  RAISE EXCEPTION SQLSTATE 'HF003';
EXCEPTION WHEN SQLSTATE 'HF003' THEN
  RETURN;
END
$body$;

-- name: upkeep
-- Folds the journal. Once a minute it also finds schedules that lost their next job, and removes rows that are no longer needed: old
-- callers, reaped sessions whose last lock has ended, and revocations and places of lock waiters that were written or locked while their
-- session was deleted.
-- Called by: sweep_upkeep, sweep.
-- States: 3 active.
-- PRUNE_EVERY_MS = 60000: how often a sweep prunes rows that are no longer needed, per schema.
-- PRUNED_AT_ONCE = 500
-- NOTES_LEFT = 1000: how many notes of groups a sweep leaves to the next claim. It applies notes only where no worker claims: a claim at
-- the same moment would pass over the groups that the sweep holds.
CREATE FUNCTION upkeep(_queue int, _now bigint) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  PERFORM try_fold(_queue);
  IF (SELECT number FROM group_notes WHERE queue = _queue ORDER BY number OFFSET 1000 LIMIT 1) IS NOT NULL THEN
    PERFORM count_groups(_queue);
  END IF;
  IF NOT (SELECT pruned_at FROM holdfast_schema) <= _now - 60000 THEN RETURN; END IF;
  PERFORM FROM holdfast_schema FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN; END IF;
  IF prune_callers(_now) OR prune_entries(_now) THEN
    -- The next sweep goes on with them.
    UPDATE holdfast_schema SET pruned_at = _now - 60000;
    RETURN;
  END IF;
  UPDATE holdfast_schema SET pruned_at = _now;
  PERFORM find_late(_now);
  PERFORM tend_groups(_now);
  DELETE FROM sessions
  WHERE ctid = ANY (
    ARRAY(
      SELECT ctid FROM sessions s
      WHERE reaped = 2 AND (
        SELECT fence FROM jobs j WHERE j.queue = s.queue AND j.state = 3 AND j.session = s.id ORDER BY fence LIMIT 1
      ) IS NULL LIMIT 500 FOR UPDATE SKIP LOCKED
    )
  );
  DELETE FROM revocations
  WHERE ctid = ANY (
    ARRAY(
      SELECT ctid FROM revocations v
      WHERE NOT EXISTS (SELECT FROM sessions s WHERE s.queue = v.queue AND s.id = v.session) LIMIT 500
    )
  );
  DELETE FROM lock_places
  WHERE ctid = ANY (
    ARRAY(
      SELECT ctid FROM lock_places p
      WHERE kept_until < _now
        AND NOT EXISTS (SELECT FROM sessions s WHERE s.queue = p.queue AND s.id = p.session) LIMIT 500 FOR UPDATE SKIP LOCKED
    )
  );
END
$body$;

-- part: look
-- The sessions and locks that a sweep looks for. `looked`: the expiry of the first session that is due for a check.
-- PRUNE_EVERY_MS = 60000: how often a sweep prunes rows that are no longer needed, per schema.
SELECT queue,
  (
    SELECT ends_at FROM jobs WHERE queue = q.queue AND ends_at IS NOT NULL AND ends_at <= _now ORDER BY ends_at LIMIT 1
  ) IS NOT NULL AS ended,
  (SELECT expires_at FROM sessions WHERE queue = q.queue AND reaped < 2 AND look_at <= _now ORDER BY look_at LIMIT 1) AS looked,
  EXISTS (SELECT FROM journal WHERE journal.queue = q.queue AND journal.number >= q.journal_from)
    OR (SELECT pruned_at FROM holdfast_schema) <= _now - 60000 AS upkeep
