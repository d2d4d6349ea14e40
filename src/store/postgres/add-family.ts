// Adds jobs with parents or children, in any queues, in one transaction: as a whole or not at all.
import type { NewJob } from '../../job/record.js';
import type { AddReply, Call } from '../contract/index.js';
import { columnsOf } from './record.js';
import type { Calls, Server } from './driver/server.js';

/** `made`: which of the jobs are new. `statuses`: the call is refused. */
type Reply = { ids: string[]; made: boolean[]; sent: boolean } | { ids: string[]; statuses: AddReply['status'][] };

interface Added {
  replies: AddReply[];
  /** True if the call has written messages. */
  sent: boolean;
}

export function isOfFamily({ queue, parents, waitsForChildren }: NewJob): boolean {
  return queue !== undefined || parents !== undefined || waitsForChildren === true;
}

/** Returns the queues that the jobs of a call belong to. */
export function queuesOf(queue: string, jobs: NewJob[]): string[] {
  return [...new Set(jobs.map((job) => job.queue ?? queue))];
}

/**
 * Lets claims of the queues that these jobs concern look for messages. Outside of the transaction that adds the jobs, where it is committed
 * at once. `related`: the queues for which this was done before.
 */
export async function ensureFamilies(server: Server, queue: string, jobs: NewJob[], related: Set<string>): Promise<void> {
  const concerned = jobs.filter((job) => isOfFamily(job) || job.deadLetter !== undefined);
  const others = concerned.flatMap(({ parents = [], deadLetter }) => [
    ...parents.map((parent) => parent.queue),
    ...(deadLetter === undefined ? [] : [deadLetter]),
  ]);
  const unknown = (names: string[]): string[] => [...new Set(names)].filter((name) => !related.has(name));
  const values = { names: unknown(queuesOf(queue, concerned)), others: unknown(others) };
  if (values.names.length + values.others.length === 0) return;
  await server.call('ensure_families', values);
  for (const name of values.names) related.add(name);
}

/** Without a call, it runs in a transaction of the user. */
export async function addFamily(server: Calls, queue: string, jobs: NewJob[], call?: Call): Promise<Added> {
  const reply = await server.call<Reply>('add_family', {
    name: queue,
    caller: call?.caller,
    seq: call?.seq,
    queues: jobs.map((job) => job.queue ?? queue),
    ...columnsOf(jobs),
    shares: jobs.map(({ shares }) => shares === true),
  });
  if ('statuses' in reply) {
    return { replies: reply.statuses.map((status, index) => ({ id: reply.ids[index] ?? '', status })), sent: false };
  }
  const { ids, made, sent } = reply;
  return { replies: ids.map((id, index) => ({ id, status: made[index] === true ? 'added' : 'duplicate' })), sent };
}
