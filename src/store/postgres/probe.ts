// The crash hint. A process that opens sessions holds an advisory lock on a direct connection for as long as it lives; the server
// drops it when the connection ends, within milliseconds of a kill. Whoever could take the lock knows that its owner is gone.
import { ADVISORY } from './advisory.js';
import { KEEPING_MS, type Server } from './server.js';
import { verb } from './sql-function.js';

/** For so long after a server has started (or another one took over) nobody is suspected: the living have to come back first. */
const SETTLING_MS = 5_000;
/** It comes when a connection was lost, and may meet another one that leads nowhere: it is not to wait for that long. */
const ATTEST_MS = 2_000;

export const PROBE_FUNCTIONS =
  // A shared lock, until the end of this call: it keeps out neither other probes nor anybody who was there before.
  verb(
    'probe(_name text, _grace float8)',
    'text',
    `
DECLARE
  _clock float8 := clock_ms();
  _until bigint := ceil(_clock + _grace);
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _gone int[];
BEGIN
  IF (SELECT served_by FROM holdfast_schema) IS DISTINCT FROM pg_postmaster_start_time() THEN
    UPDATE holdfast_schema SET served_by = pg_postmaster_start_time(), served_since = CASE WHEN served_by IS NULL THEN 0 ELSE _clock END
    WHERE served_by IS DISTINCT FROM pg_postmaster_start_time();
  END IF;
  IF (SELECT served_since FROM holdfast_schema) > _clock - ${SETTLING_MS} THEN RETURN 0; END IF;
  SELECT array_agg(vouched) INTO _gone
  FROM (SELECT DISTINCT vouched FROM sessions WHERE queue = _queue AND reaped = 0 AND vouched IS NOT NULL OFFSET 0) p
  WHERE pg_try_advisory_xact_lock_shared(${ADVISORY.presence}, vouched);
  IF _gone IS NOT NULL THEN
    -- One that is being renewed at this moment is no suspect.
    UPDATE sessions SET suspected = true, spared_until = coalesce(spared_until, expires_at), expires_at = least(expires_at, _until)
    WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM sessions WHERE queue = _queue AND reaped = 0 AND vouched = ANY (_gone) AND (NOT suspected OR expires_at > _until)
      FOR NO KEY UPDATE SKIP LOCKED));
  END IF;
  RETURN (SELECT count(*) FROM sessions WHERE queue = _queue AND reaped = 0 AND suspected);
END`,
  ) +
  // An owner that lost its lock and lives takes its name off the list of suspects, and puts it back when it has a lock again.
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

/** What a session says of the process that opened it. */
export interface Vouching {
  presence: number | null;
  /** The advisory lock that the process holds now. */
  vouched: number | null;
}

export function probe(server: Server, queue: string, graceMs: number): Promise<number> {
  return server.call<number>('probe', [queue, graceMs], KEEPING_MS);
}

/** `turn`: counts up with each word of this process. */
export async function attest(server: Server, { presence, vouched }: Vouching, turn: number): Promise<void> {
  await server.ask('attest', [presence, vouched, turn], ATTEST_MS);
}
