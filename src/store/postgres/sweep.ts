// Finds dead sessions and expired locks, and hands their jobs back. Any worker may call it. A sweep never waits for a lock: it leaves a
// row that another transaction holds to that transaction, or to the next sweep.
import type { SweepReply } from '../contract/index.js';
import { RAISED } from './errors.js';
import { journalOf } from './journal-rows.js';
import { anyNames } from './named-lock.js';
import { KEEPING_MS, type Server } from './server.js';
import { expression, step, verb } from './sql-function.js';
import { IS_OPEN, STATE } from './tables.js';
import { UNTOUCHED } from './untouched.js';

/** How often a sweep prunes rows that are no longer needed, per schema. */
const PRUNE_EVERY_MS = 60_000;
const PRUNED_AT_ONCE = 500;

/** How many sessions that were renewed since their last check one call moves on: about 2 ms. */
const LOOKED_AT_ONCE = 200;
/**
 * How many locks one call ends, or fewer if its limit says so. The first call on a connection takes longer, because the server plans its
 * statements: with 100 locks, and every branch of a sweep in one call, it took 10 ms. See REHEARSAL.
 */
const BITE = 25;

const HELD = `queue = _queue AND state = ${STATE.active} AND session = _session.id`;
const lookedAt = (queue: string) => `FROM sessions WHERE queue = ${queue} AND reaped < 2 AND look_at <= _now`;
const ended = (queue: string) =>
  `(SELECT ends_at FROM jobs WHERE queue = ${queue} AND ends_at IS NOT NULL AND ends_at <= _now ORDER BY ends_at LIMIT 1) IS NOT NULL`;
const ANY_DEAD = `(${ended('_queue')} OR (SELECT look_at ${lookedAt('_queue')} AND expires_at <= _now ORDER BY look_at LIMIT 1) IS NOT NULL)`;
const PRUNE_NOW = `(SELECT pruned_at FROM holdfast_schema) <= _now - ${PRUNE_EVERY_MS}`;
/** `looked`: the expiry of the first session that is due for a check. */
const LOOK = `SELECT queue, ${ended('q.queue')} AS ended, (SELECT expires_at ${lookedAt('q.queue')} ORDER BY look_at LIMIT 1) AS looked,
    EXISTS (SELECT FROM ${journalOf('q')}) OR ${PRUNE_NOW} AS upkeep`;

/** The fast path: most sweeps find nothing, in one statement and without a lock. */
const LOOK_ALONE = `SELECT queue, ended, looked IS NOT NULL, looked > _now, upkeep FROM (SELECT floor(clock_ms())::bigint AS _now OFFSET 0) clock,
  LATERAL (${LOOK} FROM queues q WHERE name = $1 OFFSET 0) look`;
const REAP_ALONE = 'SELECT reap($1, clock_ms(), $2, $3, $4)';
const UPKEEP_ALONE = 'SELECT upkeep($1, floor(clock_ms())::bigint)';

/**
 * Reaps a made-up session, so that the server plans the statements of a real reap while nothing waits for them. Without it, the first
 * call that handed jobs back took 7 ms.
 */
const REHEARSAL = 'SELECT rehearse_reap()';
const rehearsed = new WeakSet<Server>();

const anyHeld = (condition = 'true') =>
  `(SELECT fence FROM jobs WHERE ${HELD} AND ${condition} ORDER BY fence LIMIT 1) IS NOT NULL`;

export const SWEEP_FUNCTIONS =
  // Ends locks whose own expiry has passed. An extended lock whose session outlived the extension lives as long as the session again.
  step(
    `sweep_ended(_queue int, _clock float8, _limit int, OUT stalled text[], OUT failed text[], OUT ended int, OUT stalled_by text[],
       OUT failed_by text[])`,
    'record',
    `
DECLARE
  _now bigint := floor(_clock);
  _ended record;
  _alive text[];
BEGIN
  SELECT array_agg(at) AS rows, array_agg(DISTINCT session) FILTER (WHERE NOT timed) AS sessions, count(*) AS jobs INTO _ended FROM (
    SELECT ctid AS at, session, timed FROM jobs WHERE queue = _queue AND ends_at IS NOT NULL AND ends_at <= _now AND ${UNTOUCHED}
    ORDER BY ends_at LIMIT _limit FOR UPDATE SKIP LOCKED
  ) locked;
  ended := _ended.jobs;
  IF ended = 0 THEN RETURN; END IF;
  -- Held as a claim holds them: one that is reaped at this moment would never look at the lock again.
  SELECT array_agg(id) INTO _alive FROM (
    SELECT id FROM sessions WHERE queue = _queue AND id = ANY (_ended.sessions) AND ${IS_OPEN} FOR KEY SHARE SKIP LOCKED
  ) s;
  UPDATE jobs SET ends_at = NULL WHERE ctid = ANY (_ended.rows) AND NOT timed AND session = ANY (_alive);
  SELECT h.stalled, h.failed, h.stalled_by, h.failed_by INTO stalled, failed, stalled_by, failed_by FROM (
    SELECT array_agg(j.id ORDER BY j.ends_at) AS ids, array_agg(coalesce(s.max_stalls, 0) ORDER BY j.ends_at) AS limits,
      array_agg(loss_of(s, CASE WHEN j.timed THEN 'lock-expired' END) ORDER BY j.ends_at) AS losses
    FROM jobs j LEFT JOIN sessions s ON s.queue = j.queue AND s.id = j.session
    WHERE j.ctid = ANY (_ended.rows) AND j.ends_at + 0 <= _now AND (j.timed OR s.reaped IS DISTINCT FROM 0)
  ) dead, LATERAL hand_back(_queue, _clock, dead.ids, dead.limits, dead.losses) h WHERE dead.ids IS NOT NULL;
END`,
  ) +
  expression(
    'swept(_stalled text[], _failed text[], _reaped int, _more boolean, _lost_by text[] DEFAULT NULL)',
    'text',
    'STABLE',
    `json_build_object('stalled', _stalled, 'failed', _failed, 'reaped', _reaped, 'more', _more, 'lostBy', _lost_by)::text`,
  ) +
  // Upkeep runs only in a call that found nothing dead, because it takes longer.
  verb(
    'sweep(_name text, _limit int)',
    'text',
    `
DECLARE
  _clock float8 := clock_ms();
  _now bigint := floor(_clock);
  _look record;
  _nothing text := swept('{}', '{}', 0, false);
  _reply text := _nothing;
BEGIN
  ${LOOK}
  INTO _look FROM queues q WHERE name = _name;
  IF _look.ended OR _look.looked IS NOT NULL THEN
    _reply := reap(_look.queue, _clock, _limit, _look.ended, _look.looked > _now);
  END IF;
  IF _look.upkeep AND _reply = _nothing THEN PERFORM upkeep(_look.queue, _now); END IF;
  RETURN _reply;
END`,
  ) +
  // `_any_ended`, `_any_renewed`: the findings of LOOK, so that the server does not even plan the other branches.
  step(
    'reap(_queue int, _clock float8, _limit int, _any_ended boolean, _any_renewed boolean)',
    'text',
    `
DECLARE
  _now bigint := floor(_clock);
  _most int := least(_limit, ${BITE});
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
    UPDATE sessions SET look_at = expires_at WHERE ctid = ANY (ARRAY(
      SELECT ctid ${lookedAt('_queue')} AND expires_at > _now ORDER BY look_at LIMIT ${LOOKED_AT_ONCE} FOR NO KEY UPDATE SKIP LOCKED));
    GET DIAGNOSTICS _renewed = ROW_COUNT;
  END IF;
  WHILE _renewed < ${LOOKED_AT_ONCE} AND _left > 0 AND cardinality(_seen) < _most LOOP
    SELECT * INTO _session ${lookedAt('_queue')} AND expires_at <= _now AND id <> ALL (_seen) ORDER BY look_at LIMIT 1 FOR UPDATE SKIP LOCKED;
    EXIT WHEN NOT FOUND;
    _seen := _seen || _session.id;
    -- The newest first: when the rest follows in later bites, the oldest will be in front.
    SELECT array_agg(id ORDER BY fence) AS ids, array_agg(_session.max_stalls) AS limits, array_agg(loss_of(_session)) AS losses INTO _dead FROM (
      SELECT id, fence FROM jobs WHERE ${HELD} AND ends_at IS NULL AND ${UNTOUCHED} ORDER BY fence DESC LIMIT _left FOR UPDATE SKIP LOCKED
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
    IF _left <= 0 AND _most = ${BITE} THEN
      -- Whether there is more is for the next call to find out.
      UPDATE sessions SET reaped = 1 WHERE queue = _queue AND id = _session.id;
    ELSIF ${anyHeld('ends_at IS NULL')} OR ${anyNames('_session.id')} THEN
      UPDATE sessions SET reaped = 1 WHERE queue = _queue AND id = _session.id;
    ELSIF ${anyHeld()} THEN
      UPDATE sessions SET reaped = 2 WHERE queue = _queue AND id = _session.id;
    ELSE
      PERFORM forget_session(_queue, _session.id);
    END IF;
  END LOOP;
  IF _renewed < ${LOOKED_AT_ONCE} THEN
    _more := _left <= 0 OR cardinality(_seen) >= _most;
    IF _more AND _most < ${BITE} THEN _more := ${ANY_DEAD}; END IF;
  END IF;
  RETURN swept(_stalled, _failed, cardinality(_seen), _more, nullif(_stalled_by || _failed_by, '{}'));
END`,
  ) +
  // Works in queue 0, which never exists, and rolls back. The plans stay with the connection.
  step(
    'rehearse_reap()',
    'void',
    `
BEGIN
  INSERT INTO sessions (queue, id, host, pid, name, duration_ms, max_stalls, since, expires_at, look_at)
  VALUES (0, '', '', 0, '', 0, 1, 0, 0, 0);
  INSERT INTO jobs (queue, state, priority, ord, added, added_at, delay, timestamp, fence, id, session, name, opts, data)
  VALUES (0, ${STATE.active}, 0, 0, 0, 0, 0, 0, 0, '', '', '', '', '');
  PERFORM reap(0, clock_ms(), 2, false, false);
  RAISE EXCEPTION SQLSTATE '${RAISED.rehearsed}';
EXCEPTION WHEN SQLSTATE '${RAISED.rehearsed}' THEN
  RETURN;
END`,
  ) +
  step(
    'forget_session(_queue int, _session text)',
    'void',
    `
BEGIN
  DELETE FROM sessions WHERE queue = _queue AND id = _session;
  DELETE FROM revocations WHERE queue = _queue AND session = _session;
END`,
  ) +
  // Folds the journal. Once a minute it also removes rows that are no longer needed: old callers, reaped sessions whose last lock has
  // ended, and revocations and places of lock waiters that were written or locked while their session was deleted.
  step(
    'upkeep(_queue int, _now bigint)',
    'void',
    `
BEGIN
  PERFORM try_fold(_queue);
  IF NOT ${PRUNE_NOW} THEN RETURN; END IF;
  PERFORM FROM holdfast_schema FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN; END IF;
  IF prune_callers(_now) THEN
    -- The next sweep goes on with them.
    UPDATE holdfast_schema SET pruned_at = _now - ${PRUNE_EVERY_MS};
    RETURN;
  END IF;
  UPDATE holdfast_schema SET pruned_at = _now;
  DELETE FROM sessions WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM sessions s WHERE reaped = 2
      AND (SELECT fence FROM jobs j WHERE j.queue = s.queue AND j.state = ${STATE.active} AND j.session = s.id ORDER BY fence LIMIT 1) IS NULL
    LIMIT ${PRUNED_AT_ONCE} FOR UPDATE SKIP LOCKED));
  DELETE FROM revocations WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM revocations v WHERE NOT EXISTS (SELECT FROM sessions s WHERE s.queue = v.queue AND s.id = v.session)
    LIMIT ${PRUNED_AT_ONCE}));
  DELETE FROM lock_places WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM lock_places p WHERE kept_until < _now AND NOT EXISTS (SELECT FROM sessions s WHERE s.queue = p.queue AND s.id = p.session)
    LIMIT ${PRUNED_AT_ONCE} FOR UPDATE SKIP LOCKED));
END`,
  );

/** `reaped`: how many sessions died, in whole or in part. */
export type Swept = SweepReply & { reaped: number };

/** The reply of the SQL function. */
type SweptRow = Omit<Swept, 'lostBy'> & { lostBy: (string | null)[] | null };

export async function sweep(server: Server, queue: string, limit: number): Promise<Swept> {
  const { lostBy, ...swept } = await sweepRow(server, queue, limit);
  return lostBy === null ? swept : { ...swept, lostBy };
}

async function sweepRow(server: Server, queue: string, limit: number): Promise<SweptRow> {
  const looks = await server.short('sweep_look', LOOK_ALONE, [queue], KEEPING_MS);
  if (looks === undefined) return server.call<SweptRow>('sweep', [queue, limit], KEEPING_MS);
  const [number, anyEnded, anyLooked, renewed, upkeep] = looks[0] ?? [];
  let swept: SweptRow = { stalled: [], failed: [], reaped: 0, more: false, lostBy: null };
  if (anyEnded === true || anyLooked === true) {
    const rows = await server.short('sweep_reap', REAP_ALONE, [number, limit, anyEnded, renewed ?? false], KEEPING_MS);
    if (rows === undefined) return server.call<SweptRow>('sweep', [queue, limit], KEEPING_MS);
    swept = JSON.parse(rows[0]?.[0] as string) as SweptRow;
  }
  const { reaped, stalled, failed, more } = swept;
  const nothing = !more && reaped + stalled.length + failed.length === 0;
  if (!nothing) return swept;
  if (upkeep === true) {
    await server.short('sweep_upkeep', UPKEEP_ALONE, [number], KEEPING_MS);
  } else if (!rehearsed.has(server)) {
    rehearsed.add(server);
    await server.short('sweep_rehearsal', REHEARSAL, [], KEEPING_MS);
  }
  return swept;
}
