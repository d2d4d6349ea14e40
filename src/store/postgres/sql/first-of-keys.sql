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
-- Called by: grant-in-turn.sql.
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
    -- include: seen-keyed
    _room := least(_most - cardinality(_ids), 200 - cardinality(_decided));
    _wanted := ARRAY(
      SELECT key FROM unnest(_seen.keys) WITH ORDINALITY o(key, n) WHERE key <> ALL (_decided) AND key <> ALL (_busy) GROUP BY key
      ORDER BY min(n) LIMIT _room
    );
    _locked := lock_keys(_queue, _wanted);
    -- include: first-of-locked
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
