// Opens, renews and closes sessions. Session owners and the renewer call it through the store. A renewal must never revive a session that
// was reaped.
import { tokenOf } from '../../job/lock.js';
import { CRASH_GRACE_MS, type NewSession, type Renewal, type RenewReply, type SessionRef } from '../contract/index.js';
import { forgetSessions } from './callers.js';
import { RAISED } from './errors.js';
import { lockJobs } from './lookup.js';
import type { Vouching } from './probe.js';
import { KEEPING_MS, type Server } from './server.js';
import { step, verb } from './sql-function.js';
import { IS_OPEN, STATE } from './tables.js';

/** The jobs that the sessions _one.ids hold, session by session. */
const HELD = `unnest(_one.ids) o(id), LATERAL (
        SELECT id, fence FROM jobs WHERE queue = _one.queue AND state = ${STATE.active} AND session = o.id ORDER BY fence OFFSET 0) j`;

/**
 * A renewal moves `look_at` only if the server's clock was set back. Otherwise a session that dies then would be checked only at the old,
 * later time.
 */
const renewed = (session: string, slots: string) =>
  `UPDATE sessions s SET expires_at = ceil(clock_ms() + duration_ms), look_at = least(look_at, floor(clock_ms() + duration_ms)),
      renewals = renewals + 1, suspected = false, spared_until = NULL, slots = coalesce(${slots}, s.slots)
    WHERE ${session} AND s.${IS_OPEN}
    RETURNING s.queue, EXISTS (SELECT FROM revocations v WHERE v.queue = s.queue AND v.session = s.id)`;
const renewedByName = (name: string, id: string, slots: string) =>
  renewed(`s.queue = (SELECT queue FROM queues WHERE name = ${name}) AND s.id = ${id}`, slots);

/** The fast path for one session: a worker process has one renewer, and most processes have one worker. */
const RENEW_ALONE = renewedByName('$1', '$2', '$3::float8');

// `sessions.reaped`: 0 = open. 1 = reaped, and locks that died with it are still to be handed back. 2 = kept only because of locks with
// their own expiry, which need its owner and its maxStalls. A session that holds nothing more is deleted.
export const SESSION_FUNCTIONS =
  verb(
    `open_session(_name text, _id text, _host text, _pid float8, _owner text, _instance text, _duration float8, _max_stalls float8, _slots float8,
       _grace float8, _presence int, _vouched int)`,
    'text',
    `
DECLARE
  _clock float8 := clock_ms();
BEGIN
  INSERT INTO sessions (queue, id, host, pid, name, instance, presence, vouched, duration_ms, max_stalls, slots, grace_ms, since, expires_at, look_at)
  VALUES (queue_of(_name), _id, _host, _pid, _owner, _instance, _presence, _vouched, _duration, _max_stalls, _slots, _grace, floor(_clock),
    ceil(_clock + _duration), ceil(_clock + _duration))
  ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'Session % was opened before: give every session an id of its own.', _id USING ERRCODE = '${RAISED.sessionExists}';
  END IF;
  RETURN 'null';
END`,
  ) +
  // Renews one session where the fast path is not available.
  verb(
    'renew_one(_name text, _id text, _acked bigint, _slots float8)',
    'text',
    `
DECLARE
  _queue int;
  _revoked boolean;
BEGIN
  ${renewedByName('_name', '_id', '_slots')} INTO _queue, _revoked;
  IF _revoked THEN RETURN tell_revocations(_queue, _id, _acked); END IF;
  RETURN CASE WHEN FOUND THEN '[]' ELSE 'null' END;
END`,
  ) +
  verb(
    'renew(_names text[], _ids text[], _acked bigint[], _slots float8[])',
    'text',
    `
DECLARE
  _replies text[] := array_fill('null'::text, ARRAY[cardinality(_ids)]);
  _one record;
  _queue int;
  _revoked boolean;
BEGIN
  FOR _one IN SELECT q.queue, r.* FROM unnest(_names, _ids, _acked, _slots) WITH ORDINALITY r(name, id, acked, slots, n) JOIN queues q USING (name)
    ORDER BY q.queue, r.id COLLATE "C", r.n LOOP
    ${renewed('s.queue = _one.queue AND s.id = _one.id', '_one.slots')} INTO _queue, _revoked;
    CONTINUE WHEN NOT FOUND;
    _replies[_one.n] := CASE WHEN _revoked THEN tell_revocations(_queue, _one.id, _one.acked) ELSE '[]' END;
  END LOOP;
  RETURN '[' || array_to_string(_replies, ',') || ']';
END`,
  ) +
  // Numbers revocations under the lock of the session. A revocation that commits later gets a later number, so none is missed.
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
  // Hands back everything in one call. It locks all sessions first, then jobs, then names: every verb takes locks in this order.
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
  _losses text[];
BEGIN
  FOR _one IN SELECT DISTINCT q.queue, r.id COLLATE "C" AS id FROM unnest(_names, _ids) r(name, id) JOIN queues q USING (name) ORDER BY queue, id LOOP
    PERFORM FROM sessions WHERE queue = _one.queue AND id = _one.id FOR UPDATE;
    IF FOUND THEN
      _queues := _queues || _one.queue;
      _sessions := _sessions || _one.id;
    END IF;
  END LOOP;
  FOR _one IN SELECT queue, array_agg(id) AS ids FROM unnest(_queues, _sessions) r(queue, id) GROUP BY queue ORDER BY queue LOOP
    _held := ARRAY(SELECT j.id FROM ${HELD});
    ${lockJobs('_held', '_one.queue')};
    SELECT array_agg(h.id), array_agg(h.max_stalls), array_agg(h.loss) INTO _held, _limits, _losses FROM (
      SELECT j.id, s.max_stalls, s.loss FROM ${HELD}
        JOIN LATERAL (SELECT max_stalls, CASE WHEN _charged THEN loss_of(owner, 'exit') END AS loss FROM sessions owner WHERE owner.queue = _one.queue AND owner.id = o.id) s ON true
      ORDER BY j.fence
    ) h;
    IF _held IS NOT NULL THEN PERFORM hand_back(_one.queue, _clock, _held, CASE WHEN _charged THEN _limits END, _losses); END IF;
    PERFORM FROM (
      SELECT n.name FROM unnest(_one.ids) o(id), LATERAL (SELECT name FROM named WHERE queue = _one.queue AND session = o.id ORDER BY name OFFSET 0) n
      ORDER BY n.name OFFSET 0
    ) o, LATERAL (SELECT FROM named WHERE queue = _one.queue AND name = o.name FOR UPDATE) n;
    DELETE FROM named WHERE queue = _one.queue AND session = ANY (_one.ids);
    PERFORM free_names(_one.queue, id, 2147483647) FROM unnest(_one.ids) id;
    DELETE FROM sessions WHERE queue = _one.queue AND id = ANY (_one.ids);
    DELETE FROM revocations WHERE queue = _one.queue AND session = ANY (_one.ids);
    ${forgetSessions('_one.queue', '_one.ids')};
  END LOOP;
  RETURN 'null';
END`,
  );

export async function openSession(server: Server, session: NewSession, { presence, vouched }: Vouching): Promise<void> {
  const { queue, id, owner, durationMs, maxStalls, slots, graceMs = CRASH_GRACE_MS } = session;
  const { host, pid, name, instance } = owner;
  const values = [queue, id, host, pid, name, instance, durationMs, maxStalls, slots, graceMs, presence, vouched];
  await server.call('open_session', values);
}

type RevocationRow = [number: number, jobId: string, fence: number, reason: string];
/** Null: the session was reaped or closed. */
type Told = RevocationRow[] | null;

export async function renew(server: Server, renewals: Renewal[]): Promise<RenewReply[]> {
  const rows = await (renewals.length === 1 ? renewOne(server, renewals[0] as Renewal) : renewMany(server, renewals));
  return renewals.map(({ id }, index) => {
    const row = rows[index] ?? null;
    if (row === null) return { alive: false, revoked: [] };
    return {
      alive: true,
      revoked: row.map(([number, jobId, fence, reason]) => ({ number, jobId, token: tokenOf(id, fence), fence, reason })),
    };
  });
}

async function renewOne(server: Server, { queue, id, acked, slots }: Renewal): Promise<Told[]> {
  const rows = await server.short('renew_alone', RENEW_ALONE, [queue, id, slots ?? null], KEEPING_MS);
  // If there is no fast path, or if the session has revocations, the verb renews the session (once more) and returns them.
  if (rows !== undefined && rows[0]?.[1] !== true) return [rows.length === 0 ? null : []];
  return [await server.call<Told>('renew_one', [queue, id, acked, slots ?? null], KEEPING_MS)];
}

function renewMany(server: Server, renewals: Renewal[]): Promise<Told[]> {
  const values = [
    renewals.map(({ queue }) => queue),
    renewals.map(({ id }) => id),
    renewals.map(({ acked }) => acked),
    renewals.map(({ slots }) => slots ?? null),
  ];
  return server.call<Told[]>('renew', values, KEEPING_MS);
}

export async function closeSessions(server: Server, sessions: SessionRef[], charged: boolean): Promise<void> {
  await server.call('close_sessions', [sessions.map(({ queue }) => queue), sessions.map(({ id }) => id), charged]);
}
