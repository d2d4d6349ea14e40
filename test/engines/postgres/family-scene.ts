// What the tests of families on PostgreSQL share: a parent in the queue `p`, children in the queue `c`, and an outbox that stays full.
import type { Client } from 'pg';
import type { ClaimedJob, NewJob } from '../../../src/job/record.js';
import type { Instruction } from '../../../src/store/contract/index.js';
import type { PostgresStore } from '../../../src/store/postgres/index.js';
import { functionTexts } from '../../../src/store/postgres/driver/sql.js';
import { newJob, newSession } from './support.js';

let calls = 0;

/** A call that no other call of a test follows. */
export function newCall(): { caller: string; seq: number } {
  calls += 1;
  return { caller: `caller-${calls}`, seq: 1 };
}

export function child(id: string, parent = 'parent', onFailure?: Instruction): NewJob {
  return newJob({ id, queue: 'c', parents: [{ queue: 'p', id: parent, ...(onFailure && { onFailure }) }] });
}

export async function addFamily(
  store: PostgresStore,
  children: string[],
  parent = 'parent',
  onFailure?: Instruction,
): Promise<void> {
  const jobs = [newJob({ id: parent, waitsForChildren: true }), ...children.map((id) => child(id, parent, onFailure))];
  const replies = await store.add('p', jobs, newCall());
  const wrong = replies.filter(({ status }) => status !== 'added');
  if (wrong.length > 0) throw new Error(`not added: ${JSON.stringify(wrong)}`);
}

/** Claims up to `count` jobs, in a session of its own. */
export async function claimSome(store: PostgresStore, queue: string, count: number, jobIds?: string[]): Promise<ClaimedJob[]> {
  const id = `session-${(calls += 1)}`;
  await store.openSession(newSession({ queue, id, maxStalls: 0 }));
  return (await store.claim(queue, { session: id, seq: 1, count, ...(jobIds && { jobIds }) })).jobs;
}

export async function claimOne(store: PostgresStore, queue: string, jobId: string): Promise<ClaimedJob> {
  const [job] = await claimSome(store, queue, 1, [jobId]);
  if (job === undefined) throw new Error(`no job ${jobId} to claim`);
  return job;
}

export async function stateOf(store: PostgresStore, queue: string, id: string): Promise<string> {
  return (await store.jobs(queue, [id])).jobs[0]?.state ?? 'missing';
}

/** How many links of the parent are in each state. */
export async function linksOf(store: PostgresStore, parent = 'parent'): Promise<string> {
  const { counts } = await store.children('p', parent, { states: ['pending'], limit: 1 });
  return `${counts.pending} pending, ${counts.processed} processed, ${counts.failed} failed, ${counts.ignored} ignored`;
}

/** Delivers all messages of both queues. */
export async function relayAll(store: PostgresStore): Promise<number> {
  let sum = 0;
  for (let rounds = 0; rounds < 1_000; rounds += 1) {
    const replies = await Promise.all(['p', 'c'].map((queue) => store.relay(queue, 100)));
    sum += replies.reduce((count, { delivered }) => count + delivered, 0);
    if (replies.every(({ delivered, more }) => delivered === 0 && !more)) return sum;
  }
  throw new Error('messages are left after a thousand rounds');
}

/** Runs `work` while each relay does what `body` says, so that the messages stay in the outbox. */
export async function withoutRelay(
  client: Client,
  work: () => Promise<void>,
  body = "RAISE EXCEPTION 'no relay'",
): Promise<void> {
  const text = functionTexts().relay as string;
  await client.query('SET search_path TO holdfast');
  const declared = text.slice(0, text.indexOf('DECLARE')).replace('CREATE FUNCTION', 'CREATE OR REPLACE FUNCTION');
  await client.query(`${declared} BEGIN ${body}; RETURN 'null'; END $body$`);
  try {
    await work();
  } finally {
    await client.query(text.replace('CREATE FUNCTION', 'CREATE OR REPLACE FUNCTION'));
  }
}

/** The numbers of the messages that are not delivered. */
export async function messages(client: Client): Promise<number[]> {
  const { rows } = await client.query<{ number: string }>('SELECT number FROM holdfast.outbox ORDER BY number');
  return rows.map(({ number }) => Number(number));
}
