// The crash hint. A process that opens sessions holds an advisory lock on a direct connection for as long as it lives; the server
// drops it when the connection ends, within milliseconds of a kill. Whoever could take the lock knows that its owner is gone.
import { ADVISORY } from './advisory.js';
import type { Server } from './server.js';
import { verb } from './sql-function.js';

/** For so long after a server has started (or another one took over) nobody is suspected: the living have to come back first. */
const SETTLING_MS = 5_000;

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
  SELECT array_agg(presence) INTO _gone
  FROM (SELECT DISTINCT presence FROM sessions WHERE queue = _queue AND reaped = 0 AND hinted AND presence IS NOT NULL OFFSET 0) p
  WHERE pg_try_advisory_xact_lock_shared(${ADVISORY.presence}, presence);
  IF _gone IS NOT NULL THEN
    -- One that is being renewed at this moment is no suspect.
    UPDATE sessions SET suspected = true, spared_until = coalesce(spared_until, expires_at), expires_at = least(expires_at, _until)
    WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM sessions WHERE queue = _queue AND reaped = 0 AND hinted AND presence = ANY (_gone) AND (NOT suspected OR expires_at > _until)
      FOR NO KEY UPDATE SKIP LOCKED));
  END IF;
  RETURN (SELECT count(*) FROM sessions WHERE queue = _queue AND reaped = 0 AND suspected);
END`,
  ) +
  // An owner that lost its lock and lives takes its name off the list of suspects, and puts it back when it has the lock again.
  verb(
    'attest(_presence int, _hinted boolean)',
    'text',
    `
BEGIN
  UPDATE sessions SET hinted = _hinted, suspected = false, expires_at = greatest(expires_at, spared_until), spared_until = NULL
  WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM sessions WHERE presence = _presence AND reaped = 0 ORDER BY queue, id FOR NO KEY UPDATE));
  RETURN 'null';
END`,
  );

export function probe(server: Server, queue: string, graceMs: number): Promise<number> {
  return server.call<number>('probe', [queue, graceMs]);
}

export async function attest(server: Server, presence: number, hinted: boolean): Promise<void> {
  await server.call('attest', [presence, hinted]);
}
