import { tokenOf } from '../../job/lock.js';
import type { NewSession, Renewal, RenewReply, SessionRef } from '../contract.js';
import { RAISED } from './errors.js';
import { lockJobs } from './lookup.js';
import type { Vouching } from './probe.js';
import { KEEPING_MS, type Server } from './server.js';
import { step, verb } from './sql-function.js';
import { IS_OPEN, STATE } from './tables.js';

/** What the sessions _one.ids hold, session by session. */
const HELD = `unnest(_one.ids) o(id), LATERAL (
        SELECT id, fence FROM jobs WHERE queue = _one.queue AND state = ${STATE.active} AND session = o.id ORDER BY fence OFFSET 0) j`;

// `sessions.reaped`: 0 open; 1 reaped, and locks that died with it are still to be handed back; 2 kept only because of locks that have
// an end of their own, which need its owner and its maxStalls. A session that holds nothing more is deleted.
export const SESSION_FUNCTIONS =
  verb(
    `open_session(_name text, _id text, _host text, _pid float8, _owner text, _instance text, _duration float8, _max_stalls float8, _slots float8,
       _presence int, _vouched int)`,
    'text',
    `
DECLARE
  _clock float8 := clock_ms();
BEGIN
  INSERT INTO sessions (queue, id, host, pid, name, instance, presence, vouched, duration_ms, max_stalls, slots, since, expires_at)
  VALUES (queue_of(_name), _id, _host, _pid, _owner, _instance, _presence, _vouched, _duration, _max_stalls, _slots, floor(_clock),
    ceil(_clock + _duration))
  ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'Session % was opened before: give every session an id of its own.', _id USING ERRCODE = '${RAISED.sessionExists}';
  END IF;
  RETURN 'null';
END`,
  ) +
  verb(
    'renew(_names text[], _ids text[], _acked bigint[], _slots float8[])',
    'text',
    `
DECLARE
  _replies text[] := array_fill('null'::text, ARRAY[cardinality(_ids)]);
  _one record;
  _told text;
BEGIN
  FOR _one IN SELECT * FROM unnest(queue_ids(_names), _ids, _acked, _slots) WITH ORDINALITY r(queue, id, acked, slots, n)
    ORDER BY queue, id COLLATE "C", n LOOP
    UPDATE sessions SET expires_at = ceil(clock_ms() + duration_ms), renewals = renewals + 1, suspected = false, spared_until = NULL,
      slots = coalesce(_one.slots, slots)
    WHERE queue = _one.queue AND id = _one.id AND ${IS_OPEN};
    IF FOUND THEN
      _told := '[]';
      IF EXISTS (SELECT FROM revocations WHERE queue = _one.queue AND session = _one.id) THEN
        _told := tell_revocations(_one.queue, _one.id, _one.acked);
      END IF;
      _replies[_one.n] := _told;
    END IF;
  END LOOP;
  RETURN '[' || array_to_string(_replies, ',') || ']';
END`,
  ) +
  // Revocations get their numbers here, under the lock of the session: one that commits later gets a later number, and none is passed by.
  step(
    'tell_revocations(_queue int, _session text, _acked bigint)',
    'text',
    `
DECLARE
  _last bigint;
  _reply text;
BEGIN
  DELETE FROM revocations WHERE queue = _queue AND session = _session AND number <= _acked;
  SELECT revoked INTO _last FROM sessions WHERE queue = _queue AND id = _session;
  WITH fresh AS MATERIALIZED (
    SELECT ctid AS at, row_number() OVER (ORDER BY told_as) AS nth FROM revocations
    WHERE queue = _queue AND session = _session AND number IS NULL
  ), numbered AS (
    UPDATE revocations v SET number = _last + fresh.nth FROM fresh WHERE v.ctid = fresh.at RETURNING number
  )
  SELECT max(number) INTO _last FROM numbered;
  IF _last IS NOT NULL THEN UPDATE sessions SET revoked = _last WHERE queue = _queue AND id = _session; END IF;
  SELECT json_agg(json_build_array(number, job, fence, reason) ORDER BY number) INTO _reply FROM revocations
  WHERE queue = _queue AND session = _session;
  RETURN coalesce(_reply, '[]');
END`,
  ) +
  // Everything at once. All sessions are locked first, then jobs, then names: everybody takes them in this order.
  verb(
    'close_sessions(_names text[], _ids text[], _charged boolean)',
    'text',
    `
DECLARE
  _clock float8 := clock_ms();
  _one record;
  _queues int[] := '{}';
  _sessions text[] := '{}';
  _held text[];
  _limits float8[];
BEGIN
  FOR _one IN SELECT DISTINCT queue, id COLLATE "C" AS id FROM unnest(queue_ids(_names), _ids) r(queue, id) ORDER BY queue, id LOOP
    PERFORM FROM sessions WHERE queue = _one.queue AND id = _one.id FOR UPDATE;
    IF FOUND THEN
      _queues := _queues || _one.queue;
      _sessions := _sessions || _one.id;
    END IF;
  END LOOP;
  FOR _one IN SELECT queue, array_agg(id) AS ids FROM unnest(_queues, _sessions) r(queue, id) GROUP BY queue ORDER BY queue LOOP
    _held := ARRAY(SELECT j.id FROM ${HELD});
    ${lockJobs('_held', '_one.queue')};
    SELECT array_agg(h.id), array_agg(h.max_stalls) INTO _held, _limits FROM (
      SELECT j.id, s.max_stalls FROM ${HELD} JOIN LATERAL (SELECT max_stalls FROM sessions WHERE queue = _one.queue AND id = o.id) s ON true
      ORDER BY j.fence
    ) h;
    IF _held IS NOT NULL THEN PERFORM hand_back(_one.queue, _clock, _held, CASE WHEN _charged THEN _limits END); END IF;
    PERFORM FROM (
      SELECT n.name FROM unnest(_one.ids) o(id), LATERAL (SELECT name FROM named WHERE queue = _one.queue AND session = o.id ORDER BY name OFFSET 0) n
      ORDER BY n.name OFFSET 0
    ) o, LATERAL (SELECT FROM named WHERE queue = _one.queue AND name = o.name FOR UPDATE) n;
    DELETE FROM named WHERE queue = _one.queue AND session = ANY (_one.ids);
    PERFORM free_names(_one.queue, id, 2147483647) FROM unnest(_one.ids) id;
    DELETE FROM sessions WHERE queue = _one.queue AND id = ANY (_one.ids);
    DELETE FROM revocations WHERE queue = _one.queue AND session = ANY (_one.ids);
  END LOOP;
  RETURN 'null';
END`,
  );

export async function openSession(server: Server, session: NewSession, { presence, vouched }: Vouching): Promise<void> {
  const { queue, id, owner, durationMs, maxStalls, slots } = session;
  const { host, pid, name, instance } = owner;
  await server.call('open_session', [queue, id, host, pid, name, instance, durationMs, maxStalls, slots, presence, vouched]);
}

type RevocationRow = [number: number, jobId: string, fence: number, reason: string];

export async function renew(server: Server, renewals: Renewal[]): Promise<RenewReply[]> {
  const values = [
    renewals.map(({ queue }) => queue),
    renewals.map(({ id }) => id),
    renewals.map(({ acked }) => acked),
    renewals.map(({ slots }) => slots ?? null),
  ];
  const rows = await server.call<(RevocationRow[] | null)[]>('renew', values, KEEPING_MS);
  return renewals.map(({ id }, index) => {
    const row = rows[index] ?? null;
    if (row === null) return { alive: false, revoked: [] };
    return {
      alive: true,
      revoked: row.map(([number, jobId, fence, reason]) => ({ number, jobId, token: tokenOf(id, fence), fence, reason })),
    };
  });
}

export async function closeSessions(server: Server, sessions: SessionRef[], charged: boolean): Promise<void> {
  await server.call('close_sessions', [sessions.map(({ queue }) => queue), sessions.map(({ id }) => id), charged]);
}
