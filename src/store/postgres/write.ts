// Writes to jobs: data, progress, log rows, steps. Job handles and the queue call it through the store. A write with a token must change nothing
// if the token is not the current one. Events of users are writes too.
import type { SettleStatus } from '../../job/outcome.js';
import type { Write, WriteReply } from '../contract/index.js';
import { splitToken } from './record.js';
import type { Engine } from './driver/engine.js';
import type { Calls } from './driver/server.js';
import { joinTransaction } from './driver/user-transaction.js';

export async function write(engine: Engine, queue: string, writes: Write[], transaction?: unknown): Promise<WriteReply[]> {
  const { server, wake } = engine;
  if (transaction !== undefined)
    return writeAll(joinTransaction(server, transaction, wake.notification([queue])), queue, writes, true);
  const replies = await writeAll(server, queue, writes, false);
  // A signal may have moved a job to waiting.
  if (writes.some((item) => item.kind === 'step' && item.token === undefined)) wake.signal(queue, 'jobs');
  else if (writes.some(({ kind }) => kind === 'progress' || kind === 'event')) wake.signal(queue, 'news');
  return replies;
}

/** `within`: the call runs in a transaction of the user. */
async function writeAll(server: Calls, queue: string, writes: Write[], within: boolean): Promise<WriteReply[]> {
  const tokens = writes.map((item) => (item.kind === 'event' || item.token === undefined ? undefined : splitToken(item.token)));
  const rows = await server.call<[status: SettleStatus, count?: number | null, value?: string][]>('write_jobs', {
    name: queue,
    kinds: writes.map(({ kind }) => kind),
    ids: writes.map((item) => (item.kind === 'event' ? null : item.jobId)),
    owners: tokens.map((token) => token?.session ?? null),
    fences: tokens.map((token) => token?.fence ?? null),
    texts: writes.map(textOf),
    keeps: writes.map(keepOf),
    names: writes.map((item) => (item.kind === 'event' || item.kind === 'step' ? item.name : null)),
    within,
  });
  return rows.map(([status, count, value]) => ({
    status,
    ...(typeof count === 'number' && { count }),
    ...(value !== undefined && { value }),
  }));
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
    case 'event':
      return item.args;
    case 'step':
      return item.value;
  }
}

/** Returns how many log rows stay. Null: all. */
function keepOf(item: Write): number | null {
  if (item.kind === 'log') return item.keep ?? null;
  return item.kind === 'clearLogs' ? (item.keep ?? 0) : null;
}
