// Jobs with a lock key: of the jobs with the same key, one at a time is active. No verb waits for another because of a key, except claims
// by id.
//
// A waiting job with a key is `keyed`, where claims look for it, or `behind`, where they never look: 100,000 jobs behind cost a claim
// nothing. A claim puts a job behind if its key is taken, or if another job of the key is in front. To decide about a key, or to put a
// job behind, a transaction must hold the key's advisory lock until its commit. A claim that does not get this lock at once leaves the
// key to the transaction that holds it.
// A verb may move a job with a key out of active, or a waiting one away from its place. Such a verb does not search for the next job of
// the key. The search would need the lock, and cannot see a claim that puts a job behind at this moment. Instead, the verb records the
// key in `freed_keys`. A later claim makes the first job of such a key `keyed` again, under the lock. So a job may be keyed in vain, and
// a claim finds that out. But a job is behind only if its key is taken or freed, or if another job of the key is keyed.
import { aliveKeyed } from './dead-ranges.js';
import { jobOf } from './lookup.js';
import { expression, step } from './sql-function.js';
import { STATE } from './tables.js';
import { UNTOUCHED } from './untouched.js';

/** How many keys one claim decides about: each needs an entry in the server's lock table. */
const KEYS_AT_ONCE = 200;
/** How many jobs one look reads, and how many looks a claim makes. */
const LOOKED_AT = 500;
const LOOKS = 5;

/** The state of a job that becomes waiting. */
export const TO_WAITING = `state = CASE WHEN lock_key IS NULL THEN ${STATE.waiting} ELSE ${STATE.keyed} END`;
/** Waiting, with a key or without; of a row that is looked up by its id, as IS_ACTIVE. */
export const WAITS = `state + 0 <= ${STATE.waiting}`;

/** Records freed keys. `keys` is an array that may be null. */
export const freeKeys = (keys: string) => `
  IF ${keys} IS NOT NULL THEN
    INSERT INTO freed_keys (queue, lock_key) SELECT _queue, key FROM (SELECT DISTINCT key FROM unnest(${keys}) key WHERE key IS NOT NULL) freed;
  END IF;`;

/** As ANY_KEYED and ANY_BEHIND, but starting behind dead rows: for verbs of queues with keys. */
const HEADS = '(SELECT head_keyed, head_freed FROM dead_ranges WHERE queue = _queue UNION ALL SELECT 0, 0 LIMIT 1) dead';
export const ANY_KEYED_ALIVE = `(SELECT EXISTS (${aliveKeyed('ord', STATE.keyed, '1', 'dead.head_keyed')})
    OR (SELECT number FROM freed_keys WHERE queue = _queue AND number >= dead.head_freed ORDER BY number LIMIT 1) IS NOT NULL FROM ${HEADS})`;
export const ANY_BEHIND_ALIVE = `(SELECT EXISTS (${aliveKeyed('ord', STATE.behind, '1', 'dead.head_keyed')}) FROM ${HEADS})`;

export const ANY_KEYED = `((SELECT ord FROM jobs WHERE queue = _queue AND state = ${STATE.keyed} ORDER BY priority, ord LIMIT 1) IS NOT NULL
    OR (SELECT number FROM freed_keys WHERE queue = _queue ORDER BY number LIMIT 1) IS NOT NULL)`;
export const ANY_BEHIND = `(SELECT ord FROM jobs WHERE queue = _queue AND state = ${STATE.behind} ORDER BY priority, ord LIMIT 1) IS NOT NULL`;

/** Locks the rows of these ids that are in this state, except rows that another transaction holds. */
const unheld = (ids: string, state: number) => `ARRAY(
      SELECT j.at FROM unnest(${ids}) o(id), LATERAL (
        SELECT ctid AS at FROM jobs WHERE queue = _queue AND id = o.id AND state + 0 = ${state} AND ${UNTOUCHED} FOR UPDATE SKIP LOCKED) j)`;
const OF_KEY = (key: string) => `queue = _queue AND lock_key = ${key} AND lock_key IS NOT NULL`;
export const isTaken = (key: string) => `EXISTS (SELECT FROM jobs WHERE ${OF_KEY(key)} AND state = ${STATE.active})`;
const firstOf = (columns: string, key: string) => {
  const stretch = (rows: string) =>
    `SELECT * FROM (SELECT ${columns} FROM jobs WHERE ${OF_KEY(key)} AND state <= ${STATE.keyed} AND ${rows} ORDER BY priority, ord LIMIT 1) s`;
  return `${stretch('priority = 0 AND ord < 0')} UNION ALL ${stretch('(priority, ord) >= (0, _head_keyed)')} LIMIT 1`;
};

export const KEY_FUNCTIONS =
  expression(
    'key_lock(_queue int, _key text)',
    'bigint',
    'STABLE',
    `hashtextextended(_key, (_queue::bigint << 32) # 'jobs'::regclass::oid::bigint)`,
  ) +
  // Makes the first jobs of freed keys visible to claims again. It runs under the key's lock, in a statement that begins after the lock
  // was taken: so it sees the changes of the previous lock owner. _soon: the claim should be retried soon.
  step(
    'show_freed(_queue int, OUT _soon boolean, _head_freed bigint DEFAULT 0, _head_keyed bigint DEFAULT 0)',
    'boolean',
    `
DECLARE
  _freed record;
  _locked text[];
  _hidden record;
  _shown text[];
BEGIN
  SELECT array_agg(number) AS numbers, array_agg(lock_key) AS keys, count(*) AS many INTO _freed FROM (
    SELECT number, lock_key FROM freed_keys WHERE queue = _queue AND number >= _head_freed ORDER BY number LIMIT ${KEYS_AT_ONCE} FOR UPDATE SKIP LOCKED
  ) freed;
  _locked := lock_keys(_queue, ARRAY(SELECT DISTINCT key FROM unnest(_freed.keys) key));
  SELECT array_agg(j.id) AS ids, array_agg(o.key) AS keys INTO _hidden
  FROM unnest(_locked) o(key), LATERAL (${firstOf('id, state', 'o.key')}) j WHERE j.state = ${STATE.behind} AND NOT ${isTaken('o.key')};
  WITH shown AS (
    UPDATE jobs SET state = ${STATE.keyed} WHERE ctid = ANY (${unheld('_hidden.ids', STATE.behind)}) RETURNING lock_key
  )
  SELECT array_agg(lock_key) INTO _shown FROM shown;
  -- A key is not finished while another transaction has the row of its first job.
  _locked := ARRAY(SELECT key FROM unnest(_locked) key WHERE key <> ALL (coalesce(_hidden.keys, '{}')) OR key = ANY (_shown));
  DELETE FROM freed_keys WHERE queue = _queue
    AND number = ANY (ARRAY(SELECT number FROM unnest(_freed.numbers, _freed.keys) o(number, key) WHERE key = ANY (_locked)));
  _soon := _freed.many = ${KEYS_AT_ONCE} OR EXISTS (SELECT FROM unnest(_freed.keys) key WHERE key <> ALL (_locked));
END`,
  ) +
  // Locks the keys whose lock is free at this moment. Returns them.
  step(
    'lock_keys(_queue int, _keys text[])',
    'text[]',
    `
BEGIN
  RETURN ARRAY(SELECT key FROM unnest(_keys) WITH ORDINALITY o(key, n) WHERE pg_try_advisory_xact_lock(key_lock(_queue, key)) ORDER BY n);
END`,
  ) +
  // Returns the first jobs of up to _room free keys, each with its key locked. Puts behind the jobs of taken keys, and the jobs that wait
  // behind another job that claims look at.
  step(
    'first_of_keys(_queue int, _room int, OUT _ids text[], OUT _soon boolean, _head_keyed bigint DEFAULT 0)',
    'record',
    `
DECLARE
  _most int := least(_room, ${KEYS_AT_ONCE});
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
  FOR _look IN 1 .. ${LOOKS} LOOP
    SELECT array_agg(id) AS ids, array_agg(lock_key) AS keys, count(*) AS many INTO _seen FROM (
      ${aliveKeyed('id, lock_key', STATE.keyed, String(LOOKED_AT))}
    ) seen;
    _wanted := ARRAY(
      SELECT key FROM unnest(_seen.keys) WITH ORDINALITY o(key, n) WHERE key <> ALL (_decided) AND key <> ALL (_busy)
      GROUP BY key ORDER BY min(n) LIMIT least(_most - cardinality(_ids), ${KEYS_AT_ONCE} - cardinality(_decided)));
    _locked := lock_keys(_queue, _wanted);
    SELECT array_agg(j.id) FILTER (WHERE NOT taken) AS ids, array_agg(key) FILTER (WHERE taken) AS taken INTO _found
    FROM (SELECT key, ${isTaken('key')} AS taken FROM unnest(_locked) key) o, LATERAL (${firstOf('id', 'o.key')}) j;
    _ids := _ids || _found.ids;
    _taken := _taken || _found.taken;
    _decided := _decided || _locked;
    _busy := _busy || ARRAY(SELECT key FROM unnest(_wanted) key WHERE key <> ALL (_locked));
    -- One job of each free key stays where claims look, whichever transaction gets its lock.
    _shown := _shown || ARRAY(
      SELECT DISTINCT ON (key) id FROM unnest(_seen.ids, _seen.keys) WITH ORDINALITY o(id, key, n) WHERE key = ANY (_locked) ORDER BY key, n);
    _behind := ARRAY(
      SELECT id FROM unnest(_seen.ids, _seen.keys) o(id, key)
      WHERE key = ANY (_decided) AND id <> ALL (_ids) AND (key = ANY (_taken) OR id <> ALL (_shown)));
    IF cardinality(_behind) > 0 THEN UPDATE jobs SET state = ${STATE.behind} WHERE ctid = ANY (${unheld('_behind', STATE.keyed)}); END IF;
    IF cardinality(_busy) > 0 OR cardinality(_decided) >= ${KEYS_AT_ONCE} THEN _soon := true; END IF;
    IF _seen.many < ${LOOKED_AT} OR cardinality(_ids) >= _most OR cardinality(_decided) >= ${KEYS_AT_ONCE} THEN RETURN; END IF;
  END LOOP;
  _soon := true;
END`,
  ) +
  // Locks the keys of jobs for claims by id, which would otherwise be refused while another claim decides about the key. These claims
  // hold the jobs already. A deadlock is impossible, because a transaction that got a key without waiting waits for nothing.
  step(
    'lock_keys_of(_queue int, _ids text[])',
    'void',
    `
BEGIN
  PERFORM pg_advisory_xact_lock(lock) FROM (
    SELECT DISTINCT key_lock(_queue, j.lock_key) AS lock FROM unnest(_ids) o(id), ${jobOf('o.id', 'lock_key', `lock_key IS NOT NULL AND state <= ${STATE.delayed}`)} j
    ORDER BY lock OFFSET 0
  ) keys;
END`,
  );
