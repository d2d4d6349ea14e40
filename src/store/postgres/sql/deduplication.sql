-- Deduplication: the entries that name the owners of deduplication ids.

-- name: deduplicate
-- Decides about a new job with a deduplication, and does what that asks for. _owner: the job that owns the entry, if the new job is not to
-- be added. _kept: the new job is to be the entry's draft. _until: the end of the entry that the new job will own.
-- An add that changes nothing locks nothing: many adds of one id do not wait for one another's commits.
-- Called by: put_unique.
-- States: 2 delayed, 3 active.
CREATE FUNCTION deduplicate(
  _queue int, _clock float8, _id text, _mode json, INOUT _change journal, OUT _owner text, OUT _kept boolean,
  OUT _until bigint
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  _now bigint := floor(_clock);
  _keep boolean := coalesce(_mode ->> 'keepLastIfActive' = 'true', false);
  _replace boolean := coalesce(_mode ->> 'replaceDelayed' = 'true', false);
  _end bigint := CASE WHEN NOT _keep THEN ceil(_clock + (_mode ->> 'ttlMs')::float8) END;
  _extend boolean := coalesce(_mode ->> 'extend' = 'true', false) AND _end IS NOT NULL;
  _entry record;
BEGIN
  FOR _look IN 1 .. 2 LOOP
    SELECT d.job, d.until, d.draft, j.state, j.at,
      -- include: counts
      AS counts
    INTO _entry FROM dedup d
    LEFT JOIN LATERAL (SELECT ctid AS at, state FROM jobs j WHERE j.queue = _queue AND j.id = d.job AND true OFFSET 0) j ON true
    WHERE d.queue = _queue AND d.id = _mode ->> 'id';
    EXIT WHEN _entry.counts AND NOT (_extend OR coalesce(_keep AND _entry.state = 3 OR _replace AND _entry.state = 2, false));
    IF _look = 1 THEN PERFORM lock_entry(_queue, _mode ->> 'id'); END IF;
  END LOOP;
  _until := _end;
  IF _entry.counts IS NOT TRUE THEN RETURN; END IF;
  IF _replace AND _entry.state = 2 THEN
    -- An owner that another transaction holds counts as not delayed.
    PERFORM FROM jobs WHERE ctid = _entry.at AND state + 0 = 2 AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED;
    IF FOUND THEN
      PERFORM drop_jobs(_queue, ARRAY[_entry.at]);
      IF NOT _extend THEN _until := _entry.until; END IF;
      _change.delayed := _change.delayed - 1;
      _change.events := _change.events + 2;
      _change.body := concat_ws(
        ',', _change.body, event('removed', ARRAY[_entry.job], '{"prev":"delayed"}'),
        event('deduplicated', ARRAY[_id], json_build_object('deduplicationId', _mode ->> 'id', 'deduplicatedJobId', _entry.job))
      );
      RETURN;
    END IF;
  END IF;
  _owner := _entry.job;
  _kept := _keep AND _entry.state = 3;
  IF _extend AND _entry.draft IS NULL THEN UPDATE dedup SET until = _end WHERE queue = _queue AND id = _mode ->> 'id'; END IF;
  _change.events := _change.events + 1;
  _change.body := concat_ws(
    ',', _change.body,
    event('deduplicated', ARRAY[_owner], json_build_object('deduplicationId', _mode ->> 'id', 'deduplicatedJobId', _id))
  );
END
$body$;

-- name: entry_free
-- Returns whether a job may end now: neither its entry, if it owns one, nor its schedule, if it is the next job, is held by another
-- transaction. Sweeps never wait.
-- Called by: reap, sweep_ended.
CREATE FUNCTION entry_free(_queue int, _job text, _extras text) RETURNS boolean LANGUAGE plpgsql AS $body$
DECLARE
  _id text := _extras::json ->> 'd';
  _schedule text := _extras::json ->> 's';
BEGIN
  IF _schedule IS NOT NULL THEN
    PERFORM FROM schedules
    WHERE queue = _queue AND id = _schedule AND next_job = _job AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED;
    IF NOT FOUND AND EXISTS (SELECT FROM schedules WHERE queue = _queue AND id = _schedule AND next_job = _job) THEN
      RETURN false;
    END IF;
  END IF;
  PERFORM FROM dedup
  WHERE queue = _queue AND id = _id AND job = _job AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED;
  RETURN FOUND OR NOT EXISTS (SELECT FROM dedup WHERE queue = _queue AND id = _id AND job = _job);
END
$body$;

-- name: entry_owner
-- Returns the job that owns the entry of a deduplication id; null if no entry counts.
-- Called by: entry_owners, lock_entries, own_again.
CREATE FUNCTION entry_owner(_queue int, _now bigint, _id text) RETURNS text LANGUAGE plpgsql AS $body$
BEGIN
  RETURN (
    SELECT d.job FROM dedup d
    LEFT JOIN LATERAL (SELECT state FROM jobs j WHERE j.queue = _queue AND j.id = d.job AND true OFFSET 0) j ON true
    WHERE d.queue = _queue AND d.id = _id AND
      -- include: counts
  );
END
$body$;

-- name: entry_owners
-- Returns the jobs that own the entries of deduplication ids; null where no entry counts.
-- Called by: inspect.ts.
CREATE FUNCTION entry_owners(_name text, _ids text[]) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
BEGIN
  RETURN (
    SELECT json_agg(entry_owner(_queue, floor(clock_ms())::bigint, id) ORDER BY n) FROM unnest(_ids) WITH ORDINALITY o(id, n)
  );
END
$body$;

-- name: forget_entries
-- Deletes the entries of deduplication ids; with _owner only those that this job owns. Returns how many of them counted.
-- Called by: control.ts.
CREATE FUNCTION forget_entries(_name text, _ids text[], _owner text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _count bigint;
BEGIN
  PERFORM FROM (SELECT DISTINCT id COLLATE "C" AS id FROM unnest(_ids) id ORDER BY 1) o,
    LATERAL (SELECT FROM dedup d WHERE d.queue = _queue AND d.id = o.id FOR UPDATE) d;
  SELECT count(DISTINCT id) INTO _count FROM unnest(_ids) id, entry_owner(_queue, floor(clock_ms())::bigint, id) job
    WHERE job IS NOT NULL AND (_owner IS NULL OR job = _owner);
  DELETE FROM dedup WHERE queue = _queue AND id = ANY (_ids) AND (_owner IS NULL OR job = _owner);
  RETURN _count;
END
$body$;

-- name: lock_entries
-- Locks the entries of several jobs that an add may have to write, in the order of their ids. With one id, an entry that has an owner and
-- is not written stays free. With several, it is locked too: its owner may end before the add comes to it, and the add would then lock it
-- out of order.
-- Called by: put_unique.
CREATE FUNCTION lock_entries(_queue int, _clock float8, _dedups text[]) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _one record;
BEGIN
  FOR _one IN
    SELECT id, bool_or(writes) OR count(*) OVER () > 1 AS writes
    FROM (
      SELECT d ->> 'id' AS id, concat(d ->> 'extend', d ->> 'replaceDelayed', d ->> 'keepLastIfActive') LIKE '%true%' AS writes
      FROM (SELECT text::json AS d FROM unnest(_dedups) text WHERE text IS NOT NULL) modes
    ) modes
    GROUP BY id ORDER BY id COLLATE "C"
  LOOP
    IF _one.writes OR entry_owner(_queue, floor(_clock)::bigint, _one.id) IS NULL THEN PERFORM lock_entry(_queue, _one.id); END IF;
  END LOOP;
END
$body$;

-- name: lock_entry
-- Locks the entry of a deduplication id. If there is none, it makes one that names no owner, and so does not count.
-- The entry is where two adds meet, and an add and the end of its owner. The end of an owner has locked the job before. So an add that
-- holds an entry never waits for a job.
-- Called by: deduplicate, lock_entries, own_again.
CREATE FUNCTION lock_entry(_queue int, _id text) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  LOOP
    PERFORM FROM dedup WHERE queue = _queue AND id = _id FOR UPDATE;
    EXIT WHEN FOUND;
    INSERT INTO dedup (queue, id, job) VALUES (_queue, _id, '') ON CONFLICT DO NOTHING;
    EXIT WHEN FOUND;
  END LOOP;
END
$body$;

-- name: own_again
-- Makes finished jobs that are retried the owners of their entries again, unless an entry counts.
-- Called by: send_to_waiting.
CREATE FUNCTION own_again(_queue int, _jobs text[], _extras text[]) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _one record;
BEGIN
  FOR _one IN SELECT job, extras::json ->> 'd' AS id FROM unnest(_jobs, _extras) o(job, extras) ORDER BY extras::json ->> 'd' COLLATE "C" LOOP
    CONTINUE WHEN _one.id IS NULL;
    PERFORM lock_entry(_queue, _one.id);
    IF entry_owner(_queue, floor(clock_ms())::bigint, _one.id) IS NULL THEN
      UPDATE dedup SET job = _one.job, until = NULL, draft = NULL WHERE queue = _queue AND id = _one.id;
    END IF;
  END LOOP;
END
$body$;

-- name: prune_entries
-- Deletes entries whose end has passed. Returns whether there may be more of them.
-- Called by: upkeep.
-- PRUNED_AT_ONCE = 500
CREATE FUNCTION prune_entries(_now bigint) RETURNS boolean LANGUAGE plpgsql AS $body$
DECLARE
  _ended tid[] := ARRAY(SELECT ctid FROM dedup WHERE until <= _now ORDER BY until LIMIT 500 FOR UPDATE SKIP LOCKED);
BEGIN
  DELETE FROM dedup WHERE ctid = ANY (_ended);
  RETURN cardinality(_ended) = 500;
END
$body$;

-- name: release_entries
-- Releases the entries of jobs that have ended or, _removed, were removed by a caller. An entry with an end outlives the end of its owner.
-- A draft becomes a job that owns the entry.
-- Called by: leave.
CREATE FUNCTION release_entries(
  _queue int, _clock float8, _jobs text[], _extras text[], _removed boolean, INOUT _change journal
) RETURNS journal LANGUAGE plpgsql AS $body$
DECLARE
  _entries text[];
  _drafts text[];
  _draft json;
  _got record;
BEGIN
  SELECT array_agg(id), array_agg(draft) INTO _entries, _drafts
  FROM (
    SELECT o.id, d.draft FROM (
      SELECT job, extras::json ->> 'd' AS id FROM unnest(_jobs, _extras) o(job, extras) ORDER BY extras::json ->> 'd' COLLATE "C" OFFSET 0
    ) o, LATERAL (SELECT draft, until FROM dedup d WHERE d.queue = _queue AND d.id = o.id AND d.job = o.job FOR UPDATE) d
    WHERE _removed OR d.until IS NULL
  ) owned;
  DELETE FROM dedup WHERE queue = _queue AND id = ANY (_entries) AND (_removed OR draft IS NULL);
  IF _removed THEN RETURN; END IF;
  FOR _n IN 1 .. coalesce(cardinality(_entries), 0) LOOP
    CONTINUE WHEN _drafts[_n] IS NULL;
    _draft := _drafts[_n];
    _got := put_jobs(
      _queue, _clock, ARRAY[_draft ->> 0], ARRAY[_draft ->> 1], ARRAY[_draft ->> 2], ARRAY[_draft ->> 3],
      ARRAY[(_draft ->> 4)::int], ARRAY[(_draft ->> 5)::float8], ARRAY[(_draft ->> 6)::boolean], ARRAY[(_draft ->> 7)::float8],
      CASE WHEN _draft ->> 8 IS NOT NULL THEN ARRAY[_draft ->> 8] END, ARRAY[(_draft ->> 9)::smallint], ARRAY[_draft ->> 10], _change
    );
    _change := _got._change;
    IF _got._made IS NULL THEN
      UPDATE dedup SET job = _got._chosen[1], draft = NULL WHERE queue = _queue AND id = _entries[_n];
    ELSE
      DELETE FROM dedup WHERE queue = _queue AND id = _entries[_n];
    END IF;
  END LOOP;
END
$body$;

-- part: counts
-- True if the entry `d`, whose owner is `j`, counts.
-- States: 4 completed, 5 failed.
coalesce(d.until > _now, j.state + 0 NOT IN (4, 5), false)
