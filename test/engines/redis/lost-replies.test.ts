// S4-15 at the level of the store: connections that break at random places, callers that repeat their numbered calls. Nothing is
// lost, nothing is carried out twice, nothing stays behind.
import { expect, test } from 'vitest';
import type { Outcome } from '../../../src/job/outcome.js';
import type { ClaimedJob } from '../../../src/job/record.js';
import type { RedisStore } from '../../../src/store/redis/index.js';
import { newJob, newProxy, newServer, newSession, openStore } from './support.js';
import { paced } from '../../support/wait/pace.js';
import { insist } from '../../support/wait/insist.js';

const LIMIT_MS = paced(60_000);

const JOBS = 1_500;
const BATCH = 5;

async function produce(store: RedisStore, caller: string, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let seq = 1; ids.length < count; seq += 1) {
    const jobs = Array.from({ length: Math.min(BATCH, count - ids.length) }, () => newJob({ data: `"${'x'.repeat(100)}"` }));
    for (const { id, status } of await insist(() => store.add('q', jobs, { caller, seq }))) {
      expect(status).toBe('added');
      ids.push(id);
    }
  }
  return ids;
}

/** A worker: finishes what it holds and takes the next in the same call, until everything has run. */
async function work(store: RedisStore, id: string, ran: string[]): Promise<void> {
  let held: ClaimedJob[] = [];
  for (let seq = 1; held.length > 0 || ran.length < JOBS; seq += 1) {
    const request = { session: id, seq, count: BATCH };
    const outcomes = held.map(completed);
    const { results, claimed } = await insist(() => store.settle('q', outcomes, { caller: id, seq }, request));
    expect(results).toEqual(held.map(() => 'done'));
    held = claimed?.jobs ?? [];
    for (const job of held) ran.push(job.id);
  }
}

/** Every other one is removed on finishing: only the memory of calls can answer for it then. */
function completed({ id, token }: ClaimedJob): Outcome {
  return { kind: 'completed', jobId: id, token, value: '1', keep: Number(id) % 2 === 0 ? { count: 0 } : {} };
}

test('every job on Redis is added, run and finished once through hundreds of cuts', { timeout: LIMIT_MS }, async () => {
  const server = await newServer();
  const proxy = await newProxy(server);
  const direct = await openStore({ url: server.url });
  const stores = [await openStore({ url: proxy.url(server.url) }), await openStore({ url: proxy.url(server.url) })];
  for (const id of ['a', 'b']) await direct.openSession(newSession({ id }));
  // The server knows the scripts by now: their texts are longer than what most connections will carry.
  await direct.add('other', [newJob()], { caller: 'p', seq: 1 });
  await direct.claim('other', { session: 'none', seq: 1, count: 1 });
  await direct.settle('other', [{ kind: 'release', jobId: '1', token: 'none' }]);
  proxy.cutAfter({ bytes: { from: 100, to: 16_000, seed: 7 }, direction: 'both' });
  const ran: string[] = [];
  const [added] = await Promise.all([
    Promise.all(stores.map((store, index) => produce(store, `p${index}`, JOBS / 2))).then((lists) => lists.flat()),
    ...stores.map((store, index) => work(store, 'ab'[index] as string, ran)),
  ]);
  proxy.heal();
  expect(proxy.counts.cut).toBeGreaterThan(200);
  expect(new Set(added).size).toBe(JOBS);
  expect([...ran].sort()).toEqual([...added].sort());
  const records = (await direct.jobs('q', added)).jobs;
  added.forEach((id, index) => {
    const { state, attemptsStarted, attemptsMade } = records[index] ?? {};
    expect([state, attemptsStarted, attemptsMade]).toEqual(
      Number(id) % 2 === 0 ? [undefined, undefined, undefined] : ['completed', 1, 1],
    );
  });
  expect((await direct.status('q')).counts).toMatchObject({ waiting: 0, active: 0, completed: JOBS / 2 });
  for (const id of ['a', 'b']) expect(await direct.locks('q', { session: id })).toEqual([]);
});
