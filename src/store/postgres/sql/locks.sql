-- Locks of jobs: reading and extending them, their fences and their losses.

-- name: lock_of
-- Returns the lock of a job.
-- Called by: locks_of.
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

-- name: locks_of
-- Returns the locks of jobs, in the order of the ids; null for a job that is not active.
-- Called by: inspect.ts.
CREATE FUNCTION locks_of(_name text, _ids text[]) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
BEGIN
  RETURN (SELECT json_agg(lock_of(_name, id)::json ORDER BY n) FROM unnest(_ids) WITH ORDINALITY o(id, n));
END
$body$;

-- name: owned
-- Returns the jobs that a session holds.
-- Called by: inspect.ts.
-- States: 3 active.
CREATE FUNCTION owned(_name text, _session text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
BEGIN
  RETURN (
    SELECT json_agg(json_build_array(id, fence, claim_seq))
    FROM (SELECT id, fence, claim_seq FROM jobs WHERE queue = _queue AND state = 3 AND session = _session ORDER BY fence) held
  );
END
$body$;

-- name: extend
-- Extends locks of jobs. An extension needs the current token.
-- _alone: true for a lock that leaves its session: it becomes a timed lock. Callers leave it out if that is true for none.
-- Called by: lock.ts.
-- States: 3 active.
CREATE FUNCTION extend(
  _name text, _ids text[], _owners text[], _fences bigint[], _durations float8[], _alone boolean[] DEFAULT NULL
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _clock float8 := clock_ms();
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _locked text[];
  _reply text;
BEGIN
  -- include: lock-jobs
  WITH o AS MATERIALIZED (
    SELECT * FROM (
      SELECT DISTINCT ON (id, owner, fence) * FROM unnest(_ids, _owners, _fences, _durations) WITH ORDINALITY e(id, owner, fence, ms, n)
      ORDER BY id, owner, fence, n DESC
    ) e, LATERAL (SELECT ctid AS at FROM jobs j WHERE j.queue = _queue AND j.id = e.id AND state + 0 = 3 OFFSET 0) found
    WHERE e.id = ANY (_locked)
  )
  UPDATE jobs j SET ends_at = ceil(_clock + o.ms), timed = timed OR _alone IS NOT NULL AND EXISTS (
    SELECT FROM unnest(_ids, _owners, _fences, _alone) e(id, owner, fence, leaves)
    WHERE leaves AND (e.id, e.owner, e.fence) = (o.id, o.owner, o.fence)
  )
  FROM o WHERE j.ctid = o.at AND j.session = o.owner AND j.fence = o.fence;
  SELECT json_agg(
    CASE WHEN j.id IS NULL THEN 'missing' WHEN j.session IS DISTINCT FROM o.owner OR j.fence IS DISTINCT FROM o.fence THEN 'lost'
      WHEN j.state = 3 THEN 'done' ELSE 'finished' END
    ORDER BY o.n
  )
  INTO _reply FROM unnest(_ids, _owners, _fences) WITH ORDINALITY o(id, owner, fence, n)
  LEFT JOIN LATERAL (SELECT * FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND true OFFSET 0) j
    ON o.id = ANY (_locked);
  RETURN _reply;
END
$body$;

-- name: lift_fences
-- Lifts the fence sequence over the server's clock in µs, which no earlier fence can exceed. After a failover or from a restored
-- backup, the sequence may have lost its last numbers. It then runs in another server, so the first claim in each server lifts it.
-- Called by: acquire, take.
-- ADVISORY.fences = 1214673782
CREATE FUNCTION lift_fences(_queue int) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _clock bigint := floor(clock_ms() * 1000);
BEGIN
  PERFORM pg_advisory_xact_lock(1214673782, 'fences'::regclass::oid::int);
  -- A second ahead, which no transaction can use up between the two calls.
  IF nextval('fences') < _clock THEN PERFORM setval('fences', _clock + 1000000); END IF;
  UPDATE queues SET fenced_on = pg_postmaster_start_time() WHERE queue = _queue;
END
$body$;

-- name: losses
-- Returns which owners lost these jobs.
-- Called by: state/lost-by.ts.
CREATE FUNCTION losses(_name text, _ids text[]) RETURNS TABLE (wanted text, loss text) LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
BEGIN
  RETURN QUERY
  SELECT o.id, j.lost_by FROM unnest(_ids) o(id),
    LATERAL (SELECT lost_by FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND true OFFSET 0) j
  WHERE j.lost_by IS NOT NULL;
END
$body$;

-- name: loss_of
-- Returns LostBy, as JSON text, for a job that a session lost. Null if there is no session.
-- Called by: close_sessions, reap, sweep_ended.
CREATE FUNCTION loss_of(_session sessions, _found text DEFAULT NULL) RETURNS text LANGUAGE sql STABLE AS $body$
SELECT '{"host":' || to_json((_session).host) || ',"pid":' || (_session).pid || ',"worker":' || to_json((_session).name)
  || ',"found":"' || coalesce(_found, CASE WHEN (_session).suspected THEN 'process-gone' ELSE 'session-expired' END) || '"}'
$body$;

-- name: losses_field
-- Returns texts (losses, reasons) as a field of events: one text if all are the same, else an array.
-- Called by: hand_back.
CREATE FUNCTION losses_field(_losses text[]) RETURNS json LANGUAGE sql STABLE AS $body$
SELECT CASE WHEN _losses[1] = ALL (_losses) THEN to_json(_losses[1]) ELSE to_json(_losses) END
$body$;
