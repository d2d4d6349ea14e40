// Read-only views: jobs, lists, counts, logs, locks, sessions. Queues, workers and dashboards call it through the store.
import { tokenOf } from '../../job/lock.js';
import type { JobRecord } from '../../job/record.js';
import { REPLY_BYTES } from '../budget.js';
import type {
  JobsReply,
  ListName,
  ListQuery,
  LockInfo,
  LockQuery,
  LockReply,
  NamedLockInfo,
  OwnedLock,
  QueueStatus,
  SessionInfo,
} from '../contract/index.js';
import { CUT_PARAMETERS, cutRows, JOB_ARRAYS, type JobArrays, MOST, SIZE, toRecords } from './job-row.js';
import { ANY_BEHIND, ANY_KEYED } from './key.js';
import { fillRecords, INLINE_BYTES } from './large-values.js';
import { jobOf } from './lookup.js';
import type { Server } from './server.js';
import { verb } from './sql-function.js';
import { IS_ACTIVE, STATE } from './tables.js';

/** The rows of each list, its order, and the order of its index (`found`) if that differs. Active jobs are ordered by fence. */
const LISTS: Record<ListName, { rows: string; order: string[]; found?: string }> = {
  waiting: { rows: `state = ${STATE.waiting} AND priority = 0`, order: ['ord'] },
  prioritized: { rows: `state = ${STATE.waiting} AND priority > 0`, order: ['priority', 'ord'] },
  delayed: { rows: `state = ${STATE.delayed}`, order: ['due_at', 'ord'] },
  active: { rows: `state = ${STATE.active}`, order: ['fence'], found: 'session, fence' },
  completed: { rows: `state >= 4 AND state = ${STATE.completed}`, order: ['ord'] },
  failed: { rows: `state >= 4 AND state = ${STATE.failed}`, order: ['ord'] },
};

// Branches for queues where jobs wait for their keys: jobs that claims look at, then jobs behind. Each subquery reads as many rows as may
// be requested.
const keyedBranches = (['waiting', 'prioritized'] as const).flatMap((name) =>
  ['ASC', 'DESC'].map((direction) => {
    const by = LISTS[name].order.map((column) => `${column} ${direction}`).join(', ');
    const all = [STATE.waiting, STATE.keyed, STATE.behind].map(
      (state) => `SELECT * FROM (
        SELECT *, ${SIZE} AS size, state = ${STATE.behind} AS behind FROM jobs WHERE queue = _queue AND state = ${state} AND priority ${name === 'waiting' ? '=' : '>'} 0
        ORDER BY ${by} LIMIT _from + _count) j`,
    );
    return `WHEN '${name} ${direction} keyed' THEN
      SELECT ${JOB_ARRAYS} INTO _reply FROM ${cutRows(
        `SELECT * FROM (${all.join(' UNION ALL ')}) j ORDER BY behind ${direction}, ${by} LIMIT _count OFFSET _from`,
      )};`;
  }),
);

const listBranches = (Object.keys(LISTS) as ListName[]).flatMap((name) =>
  ['ASC', 'DESC'].map((direction) => {
    const { rows, order, found } = LISTS[name];
    const all = `jobs WHERE queue = _queue AND ${rows}`;
    const from = found === undefined ? all : `(SELECT * FROM ${all} ORDER BY ${found} OFFSET 0) all_of_them`;
    const by = order.map((column) => `${column} ${direction}`).join(', ');
    return `WHEN '${name} ${direction}' THEN
      SELECT ${JOB_ARRAYS} INTO _reply FROM ${cutRows(`SELECT *, ${SIZE} AS size FROM ${from} ORDER BY ${by} LIMIT _count OFFSET _from`)};`;
  }),
);

/** Negative positions count from the end. */
const POSITIONS = `
  _from := greatest(0, CASE WHEN _start < 0 THEN _size + _start ELSE _start END);
  _count := CASE WHEN _end < 0 THEN _size + _end ELSE least(_end, _size - 1) END - _from + 1;`;

const cutLogs = (rows: string, direction: string) => `ARRAY(SELECT row FROM (
        SELECT row, octet_length(row) AS size, sum(octet_length(row)) OVER (ROWS UNBOUNDED PRECEDING) AS upto FROM (
          SELECT row FROM logs WHERE queue = _queue AND job = _job AND ${rows} ORDER BY number ${direction}) l
      ) l WHERE upto <= _budget OR upto = size)`;

/** The owner of a row of sessions, as JSON. */
const ownerOf = (row = '') =>
  `json_build_object('host', ${row}host, 'pid', ${row}pid, 'name', ${row}name, 'instance', ${row}instance)`;

export const INSPECT_FUNCTIONS =
  verb(
    `jobs_by_id(_name text, _ids text[], ${CUT_PARAMETERS})`,
    'text',
    `
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  ${MOST}
BEGIN
  RETURN (SELECT ${JOB_ARRAYS} FROM ${cutRows(
    `SELECT j.*, coalesce(${SIZE}, 0) AS size FROM unnest(_ids) WITH ORDINALITY o(wanted, n) LEFT JOIN ${jobOf('o.wanted')} j ON true ORDER BY o.n`,
  )});
END`,
  ) +
  verb(
    `list_jobs(_name text, _list text, _start bigint, _end bigint, _asc boolean, ${CUT_PARAMETERS})`,
    'text',
    `
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _size bigint;
  _from bigint;
  _count bigint;
  _reply text;
  ${MOST}
BEGIN
  SELECT CASE _list ${Object.keys(LISTS)
    .map((name) => `WHEN '${name}' THEN ${name}`)
    .join(' ')} END INTO _size FROM counts_of(_queue);
  ${POSITIONS}
  IF _size IS NULL OR _count <= 0 THEN RETURN '[null]'; END IF;
  _count := least(_count, _most + 1);
  _list := _list || CASE WHEN _asc THEN ' ASC' ELSE ' DESC' END;
  IF _list LIKE ANY ('{waiting %,prioritized %}') AND (${ANY_KEYED} OR ${ANY_BEHIND}) THEN _list := _list || ' keyed'; END IF;
  CASE _list
    ${[...listBranches, ...keyedBranches].join('\n    ')}
  END CASE;
  RETURN _reply;
END`,
  ) +
  verb(
    'status(_name text)',
    'text',
    `
DECLARE
  _row queues;
  _counts record;
BEGIN
  SELECT * INTO _row FROM queues WHERE name = _name;
  IF NOT FOUND THEN RETURN NULL; END IF;
  SELECT * INTO _counts FROM counts_of(_row.queue);
  RETURN json_build_object('paused', _row.paused, 'counts', row_to_json(_counts), 'cap', _row.max_active,
    'limited', limited_ms(_row, _row.window_max, floor(clock_ms())::bigint));
END`,
  ) +
  verb(
    `logs_of(_name text, _job text, _start bigint, _end bigint, _asc boolean, _budget bigint DEFAULT ${Number.MAX_SAFE_INTEGER})`,
    'text',
    `
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _first bigint;
  _next bigint;
  _size bigint;
  _from bigint;
  _count bigint;
  _rows text[];
BEGIN
  SELECT log_first, log_next INTO _first, _next FROM jobs WHERE queue = _queue AND id = _job;
  _size := coalesce(_next - _first, 0);
  ${POSITIONS}
  IF _count > 0 THEN
    IF _asc THEN
      _rows := ${cutLogs('number >= _first + _from AND number < _first + _from + _count', 'ASC')};
    ELSE
      _rows := ${cutLogs('number < _next - _from AND number >= _next - _from - _count', 'DESC')};
    END IF;
  END IF;
  RETURN json_build_object('logs', coalesce(_rows, '{}'), 'count', _size);
END`,
  ) +
  verb(
    'lock_of(_name text, _job text)',
    'text',
    `
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
BEGIN
  -- A lock that was extended lives as long as its session, and at least until its own end.
  RETURN (
    SELECT json_build_object('session', j.session, 'fence', j.fence, 'owner', ${ownerOf('s.')},
      'since', j.processed_on, 'endsInMs', CASE WHEN j.timed OR s.reaped > 0 THEN coalesce(j.ends_at, s.expires_at)
        ELSE greatest(j.ends_at, s.expires_at) END - floor(clock_ms())::bigint)
    FROM jobs j LEFT JOIN sessions s ON s.queue = j.queue AND s.id = j.session WHERE j.queue = _queue AND j.id = _job AND j.${IS_ACTIVE}
  );
END`,
  ) +
  verb(
    'sessions_of(_name text)',
    'text',
    `
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
BEGIN
  RETURN (
    SELECT json_agg(json_build_object('queue', _name, 'id', id, 'owner', ${ownerOf()},
      'durationMs', duration_ms, 'since', since, 'renewals', renewals, 'expiresInMs', expires_at - floor(clock_ms())::bigint, 'suspected', suspected, 'slots', slots,
      'locks', (SELECT count(*) FROM (
        SELECT FROM jobs j WHERE j.queue = _queue AND j.state = ${STATE.active} AND j.session = s.id ORDER BY fence) held)) ORDER BY since, id)
    FROM sessions s WHERE queue = _queue AND reaped = 0
  );
END`,
  ) +
  verb(
    'owned(_name text, _session text)',
    'text',
    `
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
BEGIN
  RETURN (SELECT json_agg(json_build_array(id, fence, claim_seq)) FROM (
    SELECT id, fence, claim_seq FROM jobs WHERE queue = _queue AND state = ${STATE.active} AND session = _session ORDER BY fence
  ) held);
END`,
  );

export function queues(server: Server, limit: number, after = ''): Promise<string[]> {
  return server.call<string[]>('queue_names', { after, limit });
}

export function jobs(server: Server, queue: string, query: string[] | ListQuery): Promise<JobsReply> {
  return Array.isArray(query) ? byId(server, queue, query) : list(server, queue, query);
}

async function byId(server: Server, queue: string, jobIds: string[]): Promise<JobsReply> {
  if (jobIds.length === 0) return { jobs: [], more: false };
  const arrays = await server.call<JobArrays>('jobs_by_id', [queue, jobIds, REPLY_BYTES, 0, INLINE_BYTES]);
  const records = toRecords(arrays);
  const found = records.filter(({ id }) => (id as string | null) !== null);
  const filled = new Set(await fillRecords(server, queue, found));
  return { jobs: records.map((record) => (filled.has(record) ? record : undefined)), more: records.length < jobIds.length };
}

async function list(server: Server, queue: string, { lists, start, end, asc }: ListQuery): Promise<JobsReply> {
  const found: JobRecord[] = [];
  let used = 0;
  for (const name of lists) {
    const arrays = await server.call<JobArrays>('list_jobs', [queue, name, start, end, asc, REPLY_BYTES, used, INLINE_BYTES]);
    const records = await fillRecords(server, queue, toRecords(arrays));
    found.push(...records);
    if (arrays.at(-1) === true) return { jobs: found, more: true };
    for (const { data, returnvalue } of records) used += data.length + (returnvalue?.length ?? 0);
  }
  return { jobs: found, more: false };
}

export async function status(server: Server, queue: string): Promise<QueueStatus> {
  type Row = { paused: boolean; counts: QueueStatus['counts']; limited: number; cap: number | null };
  const row = await server.call<Row | null>('status', [queue]);
  if (row === null)
    return { paused: false, counts: { waiting: 0, prioritized: 0, delayed: 0, active: 0, completed: 0, failed: 0 } };
  const { paused, counts, limited, cap } = row;
  return { paused, counts, ...(limited > 0 && { limitedMs: limited }), ...(cap !== null && { cap: { maxActive: cap } }) };
}

export function logs(
  server: Server,
  queue: string,
  jobId: string,
  { start, end, asc }: { start: number; end: number; asc: boolean },
): Promise<{ logs: string[]; count: number }> {
  return server.call('logs_of', [queue, jobId, start, end, asc, REPLY_BYTES]);
}

export async function locks(server: Server, queue: string, query: LockQuery): Promise<LockReply> {
  if ('session' in query) return owned(server, queue, query.session);
  if ('names' in query) return namedLocks(server, queue, query.names);
  return jobLocks(server, queue, query.jobIds);
}

async function jobLocks(server: Server, queue: string, jobIds: string[]): Promise<(LockInfo | undefined)[]> {
  if (jobIds.length === 0) return [];
  const found = await server.callEach<Omit<LockInfo, 'jobId' | 'token'> | null>('lock_of', queue, jobIds);
  return jobIds.map((jobId, index) => {
    const lock = found[index] ?? undefined;
    return lock && { jobId, token: tokenOf(lock.session, lock.fence), ...lock };
  });
}

async function namedLocks(server: Server, queue: string, names: string[]): Promise<(NamedLockInfo | undefined)[]> {
  if (names.length === 0) return [];
  const found = await server.call<(NamedLockInfo | null)[]>('named_locks', { name: queue, names });
  return found.map((lock) => lock ?? undefined);
}

export async function sessions(server: Server, queue: string): Promise<SessionInfo[]> {
  return (await server.call<SessionInfo[] | null>('sessions_of', [queue])) ?? [];
}

async function owned(server: Server, queue: string, session: string): Promise<OwnedLock[]> {
  const rows = (await server.call<[jobId: string, fence: number, seq: number][] | null>('owned', [queue, session])) ?? [];
  return rows.map(([jobId, fence, seq]) => ({ jobId, token: tokenOf(session, fence), fence, seq }));
}
