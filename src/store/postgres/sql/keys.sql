-- Lock keys: of the jobs with the same key, one at a time is active.

-- name: first_of_keys
-- Jobs with a lock key: of the jobs with the same key, one at a time is active. No verb waits for another because of a key, except claims
-- by id.
-- A waiting job with a key is `keyed`, where claims look for it, or `behind`, where they never look: 100,000 jobs behind cost a claim
-- nothing. A claim puts a job behind if its key is taken, or if another job of the key is in front. To decide about a key, or to put a
-- job behind, a transaction must hold the key's advisory lock until its commit. A claim that does not get this lock at once leaves the
-- key to the transaction that holds it.
-- A verb may move a job with a key out of active, or a waiting one away from its place. Such a verb does not search for the next job of
-- the key. The search would need the lock, and cannot see a claim that puts a job behind at this moment. Instead, the verb records the
-- key in `freed_keys`. A later claim makes the first job of such a key `keyed` again, under the lock. So a job may be keyed in vain, and
-- a claim finds that out. But a job is behind only if its key is taken or freed, or if another job of the key is keyed.
-- Returns the first jobs of up to _room free keys, each with its key locked. Puts behind the jobs of taken keys, and the jobs that wait
-- behind another job that claims look at.
-- Called by: grant_in_turn.
-- States: -1 behind, 0 keyed.
-- KEYS_AT_ONCE = 200: how many keys one claim decides about: each needs an entry in the server's lock table.
-- LOOKS = 5
-- LOOKED_AT = 500: how many jobs one look reads, and how many looks a claim makes.
CREATE FUNCTION first_of_keys(
  _queue int, _room int, OUT _ids text[], OUT _soon boolean, _head_keyed bigint DEFAULT 0
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  _most int := least(_room, 200);
  _seen record;
  _wanted text[];
  _locked text[];
  _found record;
  _decided text[] := '{}';
  _taken text[] := '{}';
  _busy text[] := '{}';
  _shown text[] := '{}';
  _behind text[];
BEGIN
  _ids := '{}';
  _soon := false;
  FOR _look IN 1 .. 5 LOOP
    -- Sets _seen: the first jobs that claims look at for their keys.
    -- States: 0 keyed.
    -- LOOKED_AT = 500
    SELECT array_agg(id) AS ids, array_agg(lock_key) AS keys, count(*) AS many INTO _seen
    FROM (
      SELECT * FROM (
        SELECT id, lock_key FROM jobs WHERE queue = _queue AND state = 0 AND priority = 0 AND ord < 0
        ORDER BY priority, ord LIMIT 500
      ) s
      UNION ALL
      SELECT * FROM (
        SELECT id, lock_key FROM jobs WHERE queue = _queue AND state = 0 AND (priority, ord) >= (0, _head_keyed)
        ORDER BY priority, ord LIMIT 500
      ) s LIMIT 500
    ) seen;
    _room := least(_most - cardinality(_ids), 200 - cardinality(_decided));
    _wanted := ARRAY(
      SELECT key FROM unnest(_seen.keys) WITH ORDINALITY o(key, n) WHERE key <> ALL (_decided) AND key <> ALL (_busy) GROUP BY key
      ORDER BY min(n) LIMIT _room
    );
    _locked := lock_keys(_queue, _wanted);
    -- Sets _found: of the keys in _locked the first job of each free one, and the taken ones.
    -- States: -2 grouped, 0 keyed, 3 active.
    SELECT array_agg(j.id) FILTER (WHERE NOT taken) AS ids, array_agg(key) FILTER (WHERE taken) AS taken INTO _found
    FROM (
      SELECT key,
        EXISTS (SELECT FROM jobs WHERE queue = _queue AND lock_key = key AND lock_key IS NOT NULL AND state = 3) AS taken
      FROM unnest(_locked) key
    ) o,
      LATERAL (
        SELECT * FROM (
          SELECT id FROM jobs
          WHERE queue = _queue AND lock_key = o.key AND lock_key IS NOT NULL AND state <= 0 AND state + 0 > -2
            AND priority = 0 AND ord < 0
          ORDER BY priority, ord LIMIT 1
        ) s
        UNION ALL
        SELECT * FROM (
          SELECT id FROM jobs
          WHERE queue = _queue AND lock_key = o.key AND lock_key IS NOT NULL AND state <= 0 AND state + 0 > -2
            AND (priority, ord) >= (0, _head_keyed)
          ORDER BY priority, ord LIMIT 1
        ) s LIMIT 1
      ) j;
    _ids := _ids || _found.ids;
    _taken := _taken || _found.taken;
    _decided := _decided || _locked;
    _busy := _busy || ARRAY(SELECT key FROM unnest(_wanted) key WHERE key <> ALL (_locked));
    -- One job of each free key stays where claims look, whichever transaction gets its lock.
    _shown := _shown || ARRAY(
      SELECT DISTINCT ON (key) id FROM unnest(_seen.ids, _seen.keys) WITH ORDINALITY o(id, key, n) WHERE key = ANY (_locked)
      ORDER BY key, n
    );
    _behind := ARRAY(
      SELECT id FROM unnest(_seen.ids, _seen.keys) o(id, key)
      WHERE key = ANY (_decided) AND id <> ALL (_ids) AND (key = ANY (_taken) OR id <> ALL (_shown))
    );
    IF cardinality(_behind) > 0 THEN
      UPDATE jobs SET state = -1
      WHERE ctid = ANY (
        ARRAY(
          SELECT j.at FROM unnest(_behind) o(id),
            LATERAL (
              SELECT ctid AS at FROM jobs
              WHERE queue = _queue AND id = o.id AND state + 0 = 0 AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED
            ) j
        )
      );
    END IF;
    IF cardinality(_busy) > 0 OR cardinality(_decided) >= 200 THEN _soon := true; END IF;
    -- With as many keys as there is room for, others may remain: keys that turn out to be taken leave their room to the next look.
    IF _seen.many < 500 AND cardinality(_wanted) < _room OR cardinality(_ids) >= _most OR cardinality(_decided) >= 200 THEN RETURN; END IF;
  END LOOP;
  _soon := true;
END
$body$;

-- name: show_freed
-- Makes the first jobs of freed keys visible to claims again. It runs under the key's lock, in a statement that begins after the lock
-- was taken: so it sees the changes of the previous lock owner. _soon: the claim should be retried soon.
-- Called by: grant_in_turn.
-- States: -2 grouped, -1 behind, 0 keyed, 3 active.
-- KEYS_AT_ONCE = 200: how many keys one claim decides about: each needs an entry in the server's lock table.
CREATE FUNCTION show_freed(
  _queue int, OUT _soon boolean, _head_freed bigint DEFAULT 0, _head_keyed bigint DEFAULT 0
) RETURNS boolean LANGUAGE plpgsql AS $body$
DECLARE
  _freed record;
  _locked text[];
  _hidden record;
  _shown text[];
BEGIN
  SELECT array_agg(number) AS numbers, array_agg(lock_key) AS keys, count(*) AS many INTO _freed
  FROM (
    SELECT number, lock_key FROM freed_keys WHERE queue = _queue AND number >= _head_freed
    ORDER BY number LIMIT 200 FOR UPDATE SKIP LOCKED
  ) freed;
  _locked := lock_keys(_queue, ARRAY(SELECT DISTINCT key FROM unnest(_freed.keys) key));
  SELECT array_agg(j.id) AS ids, array_agg(o.key) AS keys INTO _hidden
  FROM unnest(_locked) o(key),
    LATERAL (
      SELECT * FROM (
        SELECT id, state FROM jobs
        WHERE queue = _queue AND lock_key = o.key AND lock_key IS NOT NULL AND state <= 0 AND state + 0 > -2
          AND priority = 0 AND ord < 0
        ORDER BY priority, ord LIMIT 1
      ) s
      UNION ALL
      SELECT * FROM (
        SELECT id, state FROM jobs
        WHERE queue = _queue AND lock_key = o.key AND lock_key IS NOT NULL AND state <= 0 AND state + 0 > -2
          AND (priority, ord) >= (0, _head_keyed)
        ORDER BY priority, ord LIMIT 1
      ) s LIMIT 1
    ) j
  WHERE j.state = -1
    AND NOT EXISTS (SELECT FROM jobs WHERE queue = _queue AND lock_key = o.key AND lock_key IS NOT NULL AND state = 3);
  WITH shown AS (
    UPDATE jobs SET state = 0
    WHERE ctid = ANY (
      ARRAY(
        SELECT j.at FROM unnest(_hidden.ids) o(id),
          LATERAL (
            SELECT ctid AS at FROM jobs
            WHERE queue = _queue AND id = o.id AND state + 0 = -1 AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED
          ) j
      )
    )
    RETURNING lock_key
  )
  SELECT array_agg(lock_key) INTO _shown FROM shown;
  -- A key is not finished while another transaction has the row of its first job.
  _locked := ARRAY(SELECT key FROM unnest(_locked) key WHERE key <> ALL (coalesce(_hidden.keys, '{}')) OR key = ANY (_shown));
  -- The server may choose to read all rows of the queue for this, the dead ones too: none below the head.
  DELETE FROM freed_keys
  WHERE queue = _queue AND number >= _head_freed
    AND number = ANY (ARRAY(SELECT number FROM unnest(_freed.numbers, _freed.keys) o(number, key) WHERE key = ANY (_locked)));
  _soon := _freed.many = 200 OR EXISTS (SELECT FROM unnest(_freed.keys) key WHERE key <> ALL (_locked));
END
$body$;

-- name: lock_keys
-- Locks the keys whose lock is free at this moment. Returns them.
-- Called by: first_of_keys, show_freed.
CREATE FUNCTION lock_keys(_queue int, _keys text[]) RETURNS text[] LANGUAGE plpgsql AS $body$
BEGIN
  RETURN ARRAY(
    SELECT key FROM unnest(_keys) WITH ORDINALITY o(key, n) WHERE pg_try_advisory_xact_lock(key_lock(_queue, key)) ORDER BY n
  );
END
$body$;

-- name: lock_keys_of
-- Locks the keys of jobs for claims by id, which would otherwise be refused while another claim decides about the key. These claims
-- hold the jobs already. A deadlock is impossible, because a transaction that got a key without waiting waits for nothing.
-- Called by: grant_by_id.
-- States: 2 delayed.
CREATE FUNCTION lock_keys_of(_queue int, _ids text[]) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  PERFORM pg_advisory_xact_lock(lock)
  FROM (
    SELECT DISTINCT key_lock(_queue, j.lock_key) AS lock
    FROM unnest(_ids) o(id),
      LATERAL (
        SELECT lock_key FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND lock_key IS NOT NULL AND state <= 2 OFFSET 0
      ) j
    ORDER BY lock OFFSET 0
  ) keys;
END
$body$;

-- name: key_lock
-- Returns the number of the advisory lock of a key.
-- Called by: lock_keys_of, lock_keys.
CREATE FUNCTION key_lock(_queue int, _key text) RETURNS bigint LANGUAGE sql STABLE AS $body$
SELECT hashtextextended(_key, (_queue::bigint << 32) # 'jobs'::regclass::oid::bigint)
$body$;

-- part: any-keyed
-- True if claims may find jobs with a key.
-- States: 0 keyed.
(
  (SELECT ord FROM jobs WHERE queue = _queue AND state = 0 ORDER BY priority, ord LIMIT 1) IS NOT NULL
    OR (SELECT number FROM freed_keys WHERE queue = _queue ORDER BY number LIMIT 1) IS NOT NULL
)

-- part: any-keyed-alive
-- True if claims may find jobs with a key. Starts behind dead rows (find_dead_ranges).
-- States: 0 keyed.
(
  SELECT EXISTS (
    SELECT * FROM (
      SELECT ord FROM jobs WHERE queue = _queue AND state = 0 AND priority = 0 AND ord < 0 ORDER BY priority, ord LIMIT 1
    ) s
    UNION ALL
    SELECT * FROM (
      SELECT ord FROM jobs WHERE queue = _queue AND state = 0 AND (priority, ord) >= (0, dead.head_keyed)
      ORDER BY priority, ord LIMIT 1
    ) s LIMIT 1
  ) OR (SELECT number FROM freed_keys WHERE queue = _queue AND number >= dead.head_freed ORDER BY number LIMIT 1) IS NOT NULL
  FROM (SELECT head_keyed, head_freed FROM dead_ranges WHERE queue = _queue UNION ALL SELECT 0, 0 LIMIT 1) dead
)
