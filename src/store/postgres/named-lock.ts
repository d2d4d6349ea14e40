// Named locks: acquire, release, and the queue of lock waiters. Lock clients call it through the store. A name must never have two living
// owners.
import type { LockGrant, LockRequest, NamedLockInfo, NamedLockRef } from '../contract/index.js';
import { ownerOf } from './inspect.js';
import type { Server } from './server.js';
import { step, verb } from './sql-function.js';
import { IS_OPEN } from './tables.js';

const ownSession = (session: string, alias = 's') =>
  `JOIN LATERAL (SELECT * FROM sessions s WHERE s.queue = _queue AND s.id = ${session} OFFSET 0) ${alias} ON true`;
const LIVES = `s.${IS_OPEN} AND s.expires_at > _now`;
/**
 * The lock waiters in their order. A place counts while it is kept and its session lives. An expired session may still be renewed, and
 * then its places count again.
 */
const LINE = `SELECT * FROM (SELECT * FROM lock_places WHERE queue = _queue AND name = _one.name ORDER BY place OFFSET 0) p
      ${ownSession('p.session')} WHERE p.kept_until > _now AND ${LIVES}`;
const PLACE = 'queue = _queue AND name = _one.name AND token = _one.token';
const AHEAD = `(SELECT count(*) FROM (${LINE}) line WHERE _place IS NULL OR place < _place)`;

/** Each place is kept longer than requested by this fraction, so that waiters that are woken in vain have nothing to write. */
const SPARE = 1 / 8;

// Row locks are taken in this order: sessions by their ids, jobs by their ids, names. A transaction that holds a name waits for nothing
// but another name. Places are deleted only if their row is not locked: a place that is left over does not count without its session.
export const NAMED_LOCK_FUNCTIONS =
  // Locks the rows of the names. A free name has no row to lock, so it gets one until the end of the call.
  step(
    'lock_names(_queue int, _names text[])',
    'void',
    `
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
END`,
  ) +
  // The reply to a request that changes nothing: its session holds the lock already, or waits behind others and has asked a moment ago.
  // When a lock comes free, all its waiters ask at once. If each of them locked and wrote, the first waiter would wait for the commits of
  // the others. Null: the request must be decided under the lock of the name.
  step(
    'glance(_queue int, _now bigint, _name text, _token text, _session text, _keep float8)',
    'text',
    `
DECLARE
  _one record;
  _place bigint;
BEGIN
  SELECT _name AS name, n.token, n.fence, s.expires_at, coalesce(${LIVES}, false) AS lives, p.place, p.kept_until INTO _one
  FROM (SELECT FROM sessions s WHERE queue = _queue AND id = _session AND ${LIVES} AND NOT suspected) own
  LEFT JOIN LATERAL (SELECT * FROM named WHERE queue = _queue AND named.name = _name OFFSET 0) n ON true
  LEFT ${ownSession('n.session')}
  LEFT JOIN LATERAL (SELECT * FROM lock_places WHERE queue = _queue AND lock_places.name = _name AND token = _token ORDER BY place LIMIT 1) p ON true;
  IF _one.lives AND _one.token = _token THEN RETURN json_build_array('held', _one.fence); END IF;
  IF _keep = 0 OR _one.place IS NULL OR _one.kept_until < _now + _keep THEN RETURN NULL; END IF;
  _place := _one.place;
  IF _one.lives THEN RETURN json_build_array('taken', NULL, ${AHEAD}, _one.expires_at - _now); END IF;
  RETURN (SELECT json_build_array('taken', NULL, ahead, NULL) FROM (SELECT ${AHEAD} AS ahead) line WHERE ahead > 0);
END`,
  ) +
  verb(
    'acquire(_name text, _names text[], _tokens text[], _sessions text[], _keeps float8[])',
    'text',
    `
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
    SELECT glance(_queue, _now, name, token, session, keep) FROM unnest(_names, _tokens, _sessions, _keeps) WITH ORDINALITY o(name, token, session, keep, n)
    ORDER BY n);
  IF array_position(_replies, NULL) IS NULL THEN RETURN '[' || array_to_string(_replies, ',') || ']'; END IF;
  _replies := '{}';
  -- Against being closed or reaped meanwhile; and those that may have to be ended are locked before any name is.
  FOR _one IN
    SELECT id, bool_or(expired) AS expired FROM (
      SELECT session AS id, false AS expired FROM unnest(_sessions) session
      UNION ALL SELECT n.session, true FROM unnest(_names) o(name)
        JOIN LATERAL (SELECT session FROM named WHERE queue = _queue AND named.name = o.name OFFSET 0) n ON true
        ${ownSession('n.session')} WHERE NOT (${LIVES})
    ) both_kinds GROUP BY id ORDER BY id
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
  IF (SELECT fenced_on FROM queues WHERE queue = _queue) IS DISTINCT FROM pg_postmaster_start_time() THEN PERFORM lift_fences(_queue); END IF;
  _now := floor(clock_ms());
  FOR _one IN SELECT * FROM unnest(_names, _tokens, _sessions, _keeps) WITH ORDINALITY o(name, token, session, keep, n) LOOP
    PERFORM FROM sessions s WHERE queue = _queue AND id = _one.session AND ${LIVES};
    IF NOT FOUND THEN
      _replies := _replies || '["gone"]'::text;
      CONTINUE;
    END IF;
    SELECT n.token, n.session, n.fence, s.expires_at, coalesce(${LIVES}, false) AS lives INTO _hold
    FROM named n LEFT ${ownSession('n.session')} WHERE n.queue = _queue AND n.name = _one.name;
    IF NOT _hold.lives AND _hold.session <> ALL (_ended) THEN
      -- It has expired since, or came to hold it since. A transaction that has its row at this moment may be about to renew it.
      PERFORM FROM sessions WHERE queue = _queue AND id = _hold.session FOR UPDATE SKIP LOCKED;
      IF FOUND THEN
        SELECT s.expires_at, ${LIVES} INTO _hold.expires_at, _hold.lives FROM sessions s WHERE queue = _queue AND id = _hold.session;
      ELSE
        _hold.lives := EXISTS (SELECT FROM sessions WHERE queue = _queue AND id = _hold.session);
      END IF;
    END IF;
    IF _hold.lives AND _hold.token = _one.token THEN
      _replies := _replies || json_build_array('held', _hold.fence)::text;
      CONTINUE;
    END IF;
    DELETE FROM lock_places WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM lock_places WHERE queue = _queue AND name = _one.name AND kept_until <= _now ORDER BY place FOR UPDATE SKIP LOCKED));
    _place := (SELECT place FROM lock_places WHERE ${PLACE} AND kept_until > _now ORDER BY place LIMIT 1);
    _ahead := ${AHEAD};
    IF NOT _hold.lives AND _ahead = 0 THEN
      -- A late renewal must not bring back the former holder, because that holder would trust its lock again.
      UPDATE sessions SET reaped = 1 WHERE queue = _queue AND id = _hold.session AND ${IS_OPEN};
      UPDATE named SET token = _one.token, session = _one.session, fence = nextval('fences'), since = _now
      WHERE queue = _queue AND name = _one.name RETURNING fence INTO _hold.fence;
      DELETE FROM lock_places WHERE ${PLACE};
      _replies := _replies || json_build_array('held', _hold.fence)::text;
      CONTINUE;
    END IF;
    IF _one.keep = 0 THEN
      DELETE FROM lock_places WHERE ${PLACE};
    ELSIF _place IS NULL THEN
      INSERT INTO lock_places (queue, name, token, session, kept_until)
      VALUES (_queue, _one.name, _one.token, _one.session, ceil(clock_ms() + _one.keep * ${1 + SPARE}));
    ELSE
      UPDATE lock_places SET kept_until = ceil(clock_ms() + _one.keep * ${1 + SPARE}) WHERE queue = _queue AND name = _one.name AND place = _place;
    END IF;
    _replies := _replies || json_build_array('taken', NULL, _ahead, CASE WHEN _hold.lives THEN greatest(0, _hold.expires_at - _now) END)::text;
  END LOOP;
  DELETE FROM named WHERE queue = _queue AND name = ANY (_names) AND token IS NULL;
  RETURN '[' || array_to_string(_replies, ',') || ']';
END`,
  ) +
  verb(
    'let_go(_name text, _names text[], _tokens text[])',
    'text',
    `
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
    UPDATE named SET token = NULL, session = NULL WHERE ${PLACE};
    _freed := FOUND;
    DELETE FROM lock_places WHERE ${PLACE} AND kept_until > _now;
    _replies := _replies || (_freed OR FOUND);
  END LOOP;
  DELETE FROM named WHERE queue = _queue AND name = ANY (_names) AND token IS NULL;
  RETURN to_json(_replies);
END`,
  ) +
  // Deletes up to _limit locks and places of a session that the caller has locked. Skips rows that another transaction holds. Returns how
  // many.
  step(
    'free_names(_queue int, _session text, _limit int)',
    'int',
    `
DECLARE
  _freed int;
  _left int;
BEGIN
  DELETE FROM named WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM named WHERE queue = _queue AND session = _session ORDER BY name LIMIT _limit FOR UPDATE SKIP LOCKED));
  GET DIAGNOSTICS _freed = ROW_COUNT;
  DELETE FROM lock_places WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM lock_places WHERE queue = _queue AND session = _session ORDER BY place LIMIT _limit - _freed FOR UPDATE SKIP LOCKED));
  GET DIAGNOSTICS _left = ROW_COUNT;
  RETURN _freed + _left;
END`,
  ) +
  verb(
    'named_locks(_name text, _names text[])',
    'text',
    `
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _now bigint := floor(clock_ms());
BEGIN
  RETURN (
    SELECT json_agg(CASE WHEN n.token IS NOT NULL THEN json_build_object('name', _one.name, 'token', n.token, 'fence', n.fence, 'session', n.session,
      'owner', ${ownerOf('s.')}, 'since', n.since,
      'endsInMs', s.expires_at - _now, 'waiting', (SELECT count(*) FROM (${LINE}) line)) END ORDER BY _one.n)
    FROM unnest(_names) WITH ORDINALITY _one(name, n)
    LEFT JOIN LATERAL (SELECT * FROM named WHERE queue = _queue AND named.name = _one.name OFFSET 0) n ON true
    LEFT ${ownSession('n.session')}
  );
END`,
  );

/** True if a session, whose row is locked, holds or waits for any name. */
export const anyNames = (session: string) =>
  `((SELECT name FROM named WHERE queue = _queue AND session = ${session} ORDER BY name LIMIT 1) IS NOT NULL
    OR (SELECT place FROM lock_places WHERE queue = _queue AND session = ${session} ORDER BY place LIMIT 1) IS NOT NULL)`;

type GrantRow = [status: LockGrant['status'], fence?: number | null, ahead?: number | null, endsInMs?: number | null];

export async function acquire(server: Server, queue: string, wishes: LockRequest[]): Promise<LockGrant[]> {
  const rows = await server.call<GrantRow[]>('acquire', [
    queue,
    wishes.map(({ name }) => name),
    wishes.map(({ token }) => token),
    wishes.map(({ session }) => session),
    wishes.map(({ keepPlaceMs }) => keepPlaceMs),
  ]);
  return rows.map(([status, fence, ahead, endsInMs]) => {
    const grant: LockGrant = { status };
    if (typeof fence === 'number') grant.fence = fence;
    if (typeof ahead === 'number') grant.ahead = ahead;
    if (typeof endsInMs === 'number') grant.endsInMs = endsInMs;
    return grant;
  });
}

export function letGo(server: Server, queue: string, locks: NamedLockRef[]): Promise<boolean[]> {
  return server.call<boolean[]>('let_go', [queue, locks.map(({ name }) => name), locks.map(({ token }) => token)]);
}

export async function namedLocks(server: Server, queue: string, names: string[]): Promise<(NamedLockInfo | undefined)[]> {
  const rows = await server.call<(NamedLockInfo | null)[]>('named_locks', [queue, names]);
  return rows.map((row) => row ?? undefined);
}
