// Extends and revokes the locks of jobs. An extension needs the current token; a revoke hands the job back without counting a stall.
import type { Extension, ExtendStatus } from '../contract/index.js';
import { splitToken } from './job-row.js';
import { jobOf, lockJobs } from './lookup.js';
import type { Server } from './server.js';
import { verb } from './sql-function.js';
import { IS_ACTIVE, STATE } from './tables.js';

export const LOCK_FUNCTIONS =
  verb(
    'extend(_name text, _ids text[], _owners text[], _fences bigint[], _durations float8[])',
    'text',
    `
DECLARE
  _clock float8 := clock_ms();
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _reply text;
BEGIN
  ${lockJobs('_ids')};
  WITH o AS MATERIALIZED (
    SELECT * FROM (
      SELECT DISTINCT ON (id, owner, fence) * FROM unnest(_ids, _owners, _fences, _durations) WITH ORDINALITY e(id, owner, fence, ms, n)
      ORDER BY id, owner, fence, n DESC
    ) e, ${jobOf('e.id', 'ctid AS at', IS_ACTIVE)} found
  )
  UPDATE jobs j SET ends_at = ceil(_clock + o.ms) FROM o WHERE j.ctid = o.at AND j.session = o.owner AND j.fence = o.fence;
  SELECT json_agg(CASE WHEN j.id IS NULL THEN 'missing' WHEN j.session IS DISTINCT FROM o.owner OR j.fence IS DISTINCT FROM o.fence THEN 'lost'
    WHEN j.state = ${STATE.active} THEN 'done' ELSE 'finished' END ORDER BY o.n)
  INTO _reply FROM unnest(_ids, _owners, _fences) WITH ORDINALITY o(id, owner, fence, n)
  LEFT JOIN ${jobOf('o.id')} j ON true;
  RETURN _reply;
END`,
  ) +
  verb(
    'revoke_jobs(_name text, _ids text[], _reason text)',
    'text',
    `
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _held record;
  _reply text;
BEGIN
  ${lockJobs('_ids')};
  SELECT array_agg(id) AS ids, array_agg(session) AS sessions, array_agg(fence) AS fences INTO _held FROM (
    SELECT * FROM (SELECT id, min(n) AS n FROM unnest(_ids) WITH ORDINALITY o(id, n) GROUP BY id) o,
      ${jobOf('o.id', 'session, fence', IS_ACTIVE)} j
    ORDER BY n
  ) held;
  -- The second mention of an active job finds it waiting.
  SELECT json_agg(CASE WHEN j.id IS NULL THEN 'missing' WHEN o.nth = 1 AND j.state = ${STATE.active} THEN 'done' ELSE 'state' END ORDER BY o.n)
  INTO _reply FROM (SELECT id, n, row_number() OVER (PARTITION BY id ORDER BY n) AS nth FROM unnest(_ids) WITH ORDINALITY u(id, n)) o
  LEFT JOIN ${jobOf('o.id', 'id, state')} j ON true;
  IF _held.ids IS NOT NULL THEN
    INSERT INTO revocations (queue, session, job, fence, reason)
    SELECT _queue, session, id, fence, _reason FROM unnest(_held.sessions, _held.ids, _held.fences) h(session, id, fence);
    PERFORM hand_back(_queue, clock_ms(), _held.ids, NULL);
  END IF;
  RETURN _reply;
END`,
  ) +
  // Processes of earlier versions call it.
  verb(
    'revoke(_name text, _ids text[], _reason text)',
    'text',
    `
BEGIN
  RETURN (SELECT json_agg(status = 'done' ORDER BY n) FROM json_array_elements_text(revoke_jobs(_name, _ids, _reason)::json) WITH ORDINALITY o(status, n));
END`,
  );

export function extend(server: Server, queue: string, extensions: Extension[]): Promise<ExtendStatus[]> {
  const tokens = extensions.map(({ token }) => splitToken(token));
  return server.call<ExtendStatus[]>('extend', [
    queue,
    extensions.map(({ jobId }) => jobId),
    tokens.map(({ session }) => session),
    tokens.map(({ fence }) => fence),
    extensions.map(({ durationMs }) => durationMs),
  ]);
}
