// Writes to jobs: data, progress, log rows. Job handles and the queue call it through the store. A write with a token must change nothing
// if the token is not the current one.
import type { SettleStatus } from '../../job/outcome.js';
import { EVENT_VALUE_BYTES } from '../budget.js';
import type { Write, WriteReply } from '../contract/index.js';
import { leaveOutLarge, valueFields } from './event-values.js';
import { FOLD_SOMETIMES, NOTE } from './fold.js';
import { splitToken } from './job-row.js';
import { lockJobs } from './lookup.js';
import type { Server } from './server.js';
import { verb } from './sql-function.js';
import { STATE } from './tables.js';

export const WRITE_FUNCTIONS = verb(
  'write_jobs(_name text, _kinds text[], _ids text[], _owners text[], _fences bigint[], _texts text[], _keeps float8[])',
  'text',
  `
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _replies text[] := '{}';
  _one record;
  _job record;
  _first int;
  _next int;
  _change journal := no_change(_queue);
  _told text[] := '{}';
  _progress text[] := '{}';
  _large int[];
BEGIN
  ${lockJobs('_ids')};
  FOR _one IN SELECT * FROM unnest(_kinds, _ids, _owners, _fences, _texts, _keeps) WITH ORDINALITY w(kind, id, owner, fence, said, keep, n) LOOP
    SELECT state, session, fence, log_first, log_next INTO _job FROM jobs WHERE queue = _queue AND id = _one.id;
    IF NOT FOUND THEN
      _replies := _replies || '["missing"]'::text;
    ELSIF _one.owner IS NOT NULL AND NOT coalesce(_job.state = ${STATE.active} AND _job.session = _one.owner AND _job.fence = _one.fence, false) THEN
      _replies := _replies || '["lost"]'::text;
    ELSIF _one.kind = 'data' THEN
      UPDATE jobs SET data = _one.said WHERE queue = _queue AND id = _one.id;
      _replies := _replies || '["done"]'::text;
    ELSIF _one.kind = 'progress' THEN
      UPDATE jobs SET progress = _one.said WHERE queue = _queue AND id = _one.id;
      _told := _told || _one.id;
      _progress := _progress || _one.said;
      _replies := _replies || '["done"]'::text;
    ELSE
      _next := _job.log_next;
      IF _one.kind = 'log' THEN
        INSERT INTO logs (queue, job, number, row) VALUES (_queue, _one.id, _next, _one.said);
        _next := _next + 1;
      END IF;
      _first := greatest(_job.log_first, _next - _one.keep);
      IF _first > _job.log_first THEN DELETE FROM logs WHERE queue = _queue AND job = _one.id AND number < _first; END IF;
      UPDATE jobs SET log_first = _first, log_next = _next WHERE queue = _queue AND id = _one.id;
      _replies := _replies || ('["done",' || _next - _first || ']');
    END IF;
  END LOOP;
  IF cardinality(_told) > 0 THEN
    _change.events := cardinality(_told);
    IF pg_column_size(_progress) > ${EVENT_VALUE_BYTES} THEN
      ${leaveOutLarge('_progress', 'unnest(_progress) WITH ORDINALITY o(said, n)')}
    END IF;
    _change.body := event('progress', _told, ${valueFields('data', '_progress')});
    ${NOTE}
    ${FOLD_SOMETIMES}
  END IF;
  RETURN '[' || array_to_string(_replies, ',') || ']';
END`,
);

export async function write(server: Server, queue: string, writes: Write[]): Promise<WriteReply[]> {
  const tokens = writes.map(({ token }) => (token === undefined ? undefined : splitToken(token)));
  const rows = await server.call<[status: SettleStatus, count?: number][]>('write_jobs', [
    queue,
    writes.map(({ kind }) => kind),
    writes.map(({ jobId }) => jobId),
    tokens.map((token) => token?.session ?? null),
    tokens.map((token) => token?.fence ?? null),
    writes.map(textOf),
    writes.map(keepOf),
  ]);
  return rows.map(([status, count]) => (count === undefined ? { status } : { status, count }));
}

function textOf(item: Write): string | null {
  switch (item.kind) {
    case 'data':
      return item.data;
    case 'progress':
      return item.progress;
    case 'log':
      return item.row;
    case 'clearLogs':
      return null;
  }
}

/** Returns how many log rows stay. Null: all. */
function keepOf(item: Write): number | null {
  if (item.kind === 'log') return item.keep ?? null;
  return item.kind === 'clearLogs' ? (item.keep ?? 0) : null;
}
