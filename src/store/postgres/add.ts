// Adds jobs. The store calls it for each batch of an add batcher, and inside transactions of the user. One job without id, lock key,
// priority, delay or lifo takes the fast path (add_plain). If the job or the queue needs more, the call falls back to `add`, which
// must then find everything as if this attempt had never happened. A repeated call (same caller and number) must return the first reply
// and add nothing.
import type { NewJob } from '../../job/record.js';
import type { AddReply, Call } from '../contract/index.js';
import { codeOf } from './driver/errors.js';
import { isPlainJob, unusualColumnsOf } from './record.js';
import { foldAside } from './state/fold.js';
import { addFamily, ensureFamilies, isOfFamily, queuesOf } from './add-family.js';
import type { Engine } from './driver/engine.js';
import type { Calls, Server } from './driver/server.js';
import { joinTransaction } from './driver/user-transaction.js';

/**
 * 23505: a user took this id before. 54000: the notification queue of the server is full, because a listener has not read for very long.
 */
const LONG_WAY = new Set(['23505', '54000']);

/** The notification for processes that wait for jobs. */
export type OwnNotification = [channel: string, payload: string];

/** `made`: the numbers of the jobs that were added; null: all. `dropped`: those that were deduplicated. */
type Reply = { first: number; count: number } | { ids: string[]; made: number[] | null; dropped?: number[]; sent?: boolean };

interface Added {
  replies: AddReply[];
  /** True if the add itself has notified the processes that wait for jobs. */
  notified: boolean;
  /** True if the call has written messages. */
  sent: boolean;
}

export async function add(engine: Engine, queue: string, jobs: NewJob[], call: Call, transaction?: unknown): Promise<AddReply[]> {
  if (transaction !== undefined) return addWithin(engine, queue, jobs, transaction);
  const { server, wake, callOrder, relays } = engine;
  if (jobs.some(isOfFamily)) {
    const { replies, sent } = await callOrder.run(call, () => addFamily(server, queue, jobs, call));
    for (const changed of queuesOf(queue, jobs)) wake.signal(changed, 'jobs');
    // An existing child that has finished sends its end to its new parents, from its own queue.
    if (sent) await relays.after(...queuesOf(queue, jobs));
    return replies;
  }
  const work = (): Promise<Added> => addSome(server, queue, jobs, call, wake.ownNotification(queue));
  const { replies, notified, sent } = await callOrder.run(call, work);
  wake.added(queue, jobs.length, notified);
  if (sent) await relays.after(queue);
  return replies;
}

async function addSome(
  server: Server,
  queue: string,
  jobs: NewJob[],
  call: Call,
  notification: OwnNotification | undefined,
): Promise<Added> {
  const row = isPlain(jobs) ? await addPlain(server, queue, jobs[0], call, notification) : undefined;
  if (row === undefined) {
    const reply = await addAny(server, queue, jobs, call);
    return { replies: toReplies(reply), notified: false, sent: 'sent' in reply && reply.sent === true };
  }
  foldAside(server, queue);
  return { replies: toReplies(JSON.parse(row[0] as string) as Reply), notified: row[1] === true, sent: false };
}

function isPlain(jobs: NewJob[]): jobs is [NewJob] {
  const [job] = jobs;
  return job !== undefined && jobs.length === 1 && isPlainJob(job);
}

/** Returns undefined if the queue needs more than the fast path, or if connections are not set up for it. */
async function addPlain(
  server: Server,
  queue: string,
  { name, data, opts, timestamp }: NewJob,
  { caller, seq }: Call,
  [channel, payload]: OwnNotification | [] = [],
): Promise<unknown[] | undefined> {
  try {
    return (await server.short('add_plain', { queue, caller, seq, name, data, opts, timestamp, channel, payload }))?.[0];
  } catch (error) {
    if (!LONG_WAY.has(codeOf((error as Error).cause) ?? '')) throw error;
    return undefined;
  }
}

/**
 * Adds jobs inside a transaction of the user. The call has no number, because a lost reply ends the transaction: there is no call to
 * repeat.
 */
async function addWithin(engine: Engine, queue: string, jobs: NewJob[], transaction: unknown): Promise<AddReply[]> {
  const { server, wake, known } = engine;
  const related = jobs.some(isOfFamily);
  const joined = joinTransaction(server, transaction, wake.notification(related ? queuesOf(queue, jobs) : [queue]));
  if (jobs.length === 0) return [];
  // Create the queue outside of the transaction, where it is committed at once. Otherwise other processes that use the name for the
  // first time would wait for the commit.
  for (const name of queuesOf(queue, jobs)) {
    const grouped = jobs.some((job) => job.group !== undefined && (job.queue ?? queue) === name);
    if (known.get(name) === true || (!grouped && known.has(name))) continue;
    if (grouped) await server.call('ensure_groups', { name });
    else await server.call('ensure_queue', { name });
    known.set(name, grouped);
  }
  await ensureFamilies(server, queue, jobs, engine.related);
  return related ? (await addFamily(joined, queue, jobs)).replies : toReplies(await addAny(joined, queue, jobs));
}

function addAny(server: Calls, queue: string, jobs: NewJob[], call?: Call): Promise<Reply> {
  return server.call<Reply>('add', {
    name: queue,
    caller: call?.caller,
    seq: call?.seq,
    ...unusualColumnsOf(jobs),
    dedups: jobs.some(({ deduplication }) => deduplication !== undefined) ? jobs.map(deduplicationOf) : null,
  });
}

function toReplies(reply: Reply): AddReply[] {
  if ('first' in reply) {
    return Array.from({ length: reply.count }, (_, index) => ({ id: String(reply.first + index), status: 'added' }));
  }
  const made = reply.made === null ? undefined : new Set(reply.made);
  const dropped = new Set(reply.dropped);
  return reply.ids.map((id, index) => {
    if (dropped.has(index + 1)) return { id, status: 'deduplicated' };
    return { id, status: made === undefined || made.has(index + 1) ? 'added' : 'duplicate' };
  });
}

function deduplicationOf({ deduplication }: NewJob): string | null {
  return deduplication === undefined ? null : JSON.stringify(deduplication);
}
