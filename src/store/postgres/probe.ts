// The crash hint. A process that opens sessions holds an advisory lock on a direct connection for as long as it lives. The server drops
// the lock when the connection ends, within milliseconds of a kill. If a probe can take the lock, its owner is gone. A hint may only
// shorten a session to its grace, never end it.
import type { ProbeReply, SessionRef } from '../contract/index.js';
import { ADVISORY } from './advisory.js';
import { KEEPING_MS, type Server } from './server.js';
import { step, verb } from './sql-function.js';
import { IS_OPEN } from './tables.js';

/**
 * After a server has started (or another one took over), no session is suspected for this many ms: living processes must reconnect first.
 */
const SETTLING_MS = 5_000;
/** Timeout of an attest. It is sent after a connection was lost, and may get another dead connection: it must not wait long for that. */
const ATTEST_MS = 2_000;
/** Timeout of a suspicion check: its caller repeats it soon, with a reply or without. */
const ASK_MS = 2_000;

/** How many processes one probe suspects: each takes an entry in the server's lock table for a moment. */
const SUSPECTED_AT_ONCE = 500;
/** Must match the condition of the index sessions_vouched. */
const UNSUSPECTED = 'reaped = 0 AND NOT suspected AND vouched IS NOT NULL';

const unsuspectedOf = (
  name: string,
  id: string,
) => `FROM sessions WHERE queue = (SELECT queue FROM queues WHERE name = ${name}) AND id = ${id}
      AND ${IS_OPEN} AND NOT suspected AND expires_at > clock_ms()`;
/** The fast path: most suspicion checks are for one worker. */
const UNSUSPECTED_ALONE = `SELECT EXISTS (SELECT ${unsuspectedOf('$1', '$2')})`;

export const PROBE_FUNCTIONS =
  // Suspicion has two steps: the first marks the session as suspected, the second sets when it ends. Between them lies a commit that
  // every process can see. So if a process finds its session unsuspected, the session lasts at least for its grace from then on, however
  // long that commit took.
  // The probe tries a shared lock until the end of this call: it blocks neither other probes nor an owner that still holds its lock.
  verb(
    'probe(_name text, _hinted boolean)',
    'text',
    `
DECLARE
  _clock float8 := clock_ms();
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _vouched int[];
  _looking bigint;
  _gone int[];
  _fresh int := 0;
BEGIN
  IF NOT _hinted THEN RETURN json_build_array((SELECT count(*) FROM sessions WHERE queue = _queue AND reaped < 2), NULL, 0); END IF;
  SELECT array_agg(vouched), coalesce(sum(sessions), 0) INTO _vouched, _looking FROM (
    SELECT vouched, count(*) AS sessions FROM sessions WHERE queue = _queue AND ${UNSUSPECTED} GROUP BY vouched
  ) p;
  IF (SELECT served_by FROM holdfast_schema) IS DISTINCT FROM pg_postmaster_start_time() THEN
    UPDATE holdfast_schema SET served_by = pg_postmaster_start_time(), served_since = CASE WHEN served_by IS NULL THEN 0 ELSE _clock END
    WHERE served_by IS DISTINCT FROM pg_postmaster_start_time();
  END IF;
  IF (SELECT served_since FROM holdfast_schema) > _clock - ${SETTLING_MS} THEN RETURN json_build_array(_looking, NULL, 0); END IF;
  PERFORM shorten_suspected(_queue);
  SELECT array_agg(vouched) INTO _gone FROM (
    SELECT vouched FROM unnest(_vouched) vouched WHERE pg_try_advisory_xact_lock_shared(${ADVISORY.presence}, vouched)
    LIMIT ${SUSPECTED_AT_ONCE}) p;
  IF _gone IS NOT NULL THEN
    -- One that is being renewed at this moment is no suspect.
    UPDATE sessions SET suspected = true WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM sessions WHERE queue = _queue AND ${UNSUSPECTED} AND vouched = ANY (_gone)
      FOR NO KEY UPDATE SKIP LOCKED));
    GET DIAGNOSTICS _fresh = ROW_COUNT;
  END IF;
  RETURN json_build_array(_looking, (SELECT min(expires_at) FROM sessions WHERE queue = _queue AND reaped = 0 AND suspected) - floor(_clock),
    _fresh);
END`,
  ) +
  // The clock is read in the statement that reads the rows: never before the suspicion was visible to all processes.
  step(
    'shorten_suspected(_queue int)',
    'void',
    `
BEGIN
  UPDATE sessions SET spared_until = expires_at, expires_at = least(expires_at, ceil(clock + grace_ms)), look_at = least(look_at, ceil(clock + grace_ms))
  FROM (SELECT clock_ms() AS clock OFFSET 0) read WHERE sessions.ctid = ANY (ARRAY(
    SELECT ctid FROM sessions WHERE queue = _queue AND reaped = 0 AND suspected AND spared_until IS NULL FOR NO KEY UPDATE SKIP LOCKED));
END`,
  ) +
  // Clears the suspicion of a session that is granted a lock: its owner lives. Otherwise the owner would trust a lock that ends before
  // its time. Returns whether the session is alive.
  step(
    'clear_suspicion(_queue int, _session text, _now bigint)',
    'boolean',
    `
BEGIN
  UPDATE sessions SET suspected = false, expires_at = greatest(expires_at, spared_until), spared_until = NULL
  WHERE queue = _queue AND id = _session AND ${IS_OPEN} AND expires_at > _now;
  RETURN FOUND;
END`,
  ) +
  // Not a verb: it is called so often that the settings of a verb would be half of its cost. Two rows by their keys need fewer settings.
  `CREATE FUNCTION unsuspected(_names text[], _ids text[]) RETURNS text LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_seqscan TO off AS $body$
DECLARE
  _replies boolean[] := '{}';
BEGIN
  FOR _n IN 1 .. cardinality(_ids) LOOP
    PERFORM ${unsuspectedOf('_names[_n]', '_ids[_n]')};
    _replies := _replies || FOUND;
  END LOOP;
  RETURN array_to_json(_replies);
END$body$;\n` +
  // A process that lives but lost its advisory lock clears the suspicion of its sessions. It names the new lock when it holds one again.
  verb(
    'attest(_presence int, _vouched int, _turn int)',
    'text',
    `
BEGIN
  PERFORM FROM sessions WHERE presence = _presence ORDER BY queue, id FOR NO KEY UPDATE;
  UPDATE sessions SET vouched = _vouched, attested = _turn, suspected = false, expires_at = greatest(expires_at, spared_until), spared_until = NULL
  WHERE presence = _presence AND reaped = 0 AND attested < _turn;
  RETURN 'null';
END`,
  );

/** Names the process that opened a session. */
export interface Vouching {
  presence: number | null;
  /** The advisory lock that the process holds now. Null: none. */
  vouched: number | null;
}

type Probed = [sessions: number, dueInMs: number | null, suspectedNow: number];

/** Checks which processes are gone. Without hints of its own, a process suspects no other. */
export async function probe(server: Server, queue: string, hinted: boolean): Promise<ProbeReply> {
  const look = (): Promise<Probed> => server.call<Probed>('probe', [queue, hinted], KEEPING_MS);
  let [sessions, dueInMs, suspectedNow] = await look();
  // The suspicion is committed now: the second call sets when the suspected sessions end.
  if (suspectedNow > 0) [sessions, dueInMs, suspectedNow] = await look();
  return dueInMs === null ? { sessions } : { sessions, dueInMs: Math.max(0, dueInMs) };
}

export async function unsuspected(server: Server, sessions: SessionRef[]): Promise<boolean[]> {
  const [one] = sessions;
  if (one !== undefined && sessions.length === 1) {
    const rows = await server.askShort('unsuspected_alone', UNSUSPECTED_ALONE, [one.queue, one.id], ASK_MS);
    if (rows !== undefined) return [rows[0]?.[0] === true];
  }
  return server.ask<boolean[]>('unsuspected', [sessions.map(({ queue }) => queue), sessions.map(({ id }) => id)], ASK_MS);
}

/** `turn`: counts up with each attest of this process. */
export async function attest(server: Server, { presence, vouched }: Vouching, turn: number): Promise<void> {
  await server.ask('attest', [presence, vouched, turn], ATTEST_MS);
}
