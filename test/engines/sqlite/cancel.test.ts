import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import type { Outcome } from '../../../src/job/outcome.js';
import type { ClaimedJob } from '../../../src/job/record.js';
import type { Change, ChangeReply, Store } from '../../../src/store/contract/index.js';
import { afterwards, newFile, newJob, newSession, openStore, StoreProcess } from './support.js';

const Q = 'q';
const CANCEL: Change = { kind: 'cancel', reason: 'cancelled' };

async function opened(): Promise<{ file: string; store: Store }> {
  const file = newFile();
  const store = await openStore({ path: file });
  await store.openSession(newSession({ queue: Q, durationMs: 600_000 }));
  return { file, store };
}

let seq = 0;
async function running(store: Store, id: string, opts = '{}'): Promise<ClaimedJob> {
  seq += 1;
  await store.add(Q, [newJob({ id, opts })], { caller: id, seq: 1 });
  return (await store.claim(Q, { session: 's', seq, count: 1, jobIds: [id] })).jobs[0] as ClaimedJob;
}

async function stateOf(store: Store, id: string): Promise<string | undefined> {
  return (await store.jobs(Q, [id])).jobs[0]?.state;
}

const released = ({ id: jobId, token }: ClaimedJob): Outcome => ({ kind: 'release', jobId, token });
const completed = ({ id: jobId, token }: ClaimedJob): Outcome => ({ kind: 'completed', jobId, token, value: '1', keep: {} });

describe('two processes at once on SQLite', () => {
  const ROUNDS = 40;

  async function ends(round: (store: Store, other: StoreProcess, id: string) => Promise<string>): Promise<Set<string>> {
    const { file, store } = await opened();
    const other = await StoreProcess.start(file);
    await other.call('open');
    const seen = new Set<string>();
    for (let n = 0; n < ROUNDS; n += 1) seen.add(await round(store, other, `job-${n}`));
    return seen;
  }

  /** Hands a job back while the other process cancels it. */
  const againstRelease = (change: Change): Promise<Set<string>> =>
    ends(async (store, other, id) => {
      const job = await running(store, id);
      await Promise.all([store.settle(Q, [released(job)]), other.call('change', Q, [id], change)]);
      return String(await stateOf(store, id));
    });

  it('a cancel against the hand-back of its job: the job fails, whichever comes first', async () => {
    expect([...(await againstRelease(CANCEL))]).toEqual(['failed']);
  });

  it('(N) a hand-back without a cancel lets the job wait', async () => {
    const other: Change = { kind: 'priority', priority: 0, lifo: false };
    expect([...(await againstRelease(other))]).toEqual(['waiting']);
  });

  it('a cancel against the completion of its job: the completion counts, and the cancel says whether it came in time', async () => {
    const seen = await ends(async (store, other, id) => {
      const job = await running(store, id);
      const [{ results }, reply] = await Promise.all([
        store.settle(Q, [completed(job)]),
        other.call<ChangeReply>('change', Q, [id], CANCEL),
      ]);
      const { state, cancelled } = (await store.jobs(Q, [id])).jobs[0] ?? {};
      return `${results[0]} ${state} ${cancelled} ${reply.changed.length + reply.others.filter(({ status }) => status === 'state').length}`;
    });
    expect([...seen]).toEqual(['done completed undefined 1']);
  });

  it('a cancel against a claim: the job fails before its run, or its run gets the notice', async () => {
    let acked = 0;
    const seen = await ends(async (store, other, id) => {
      await store.add(Q, [newJob({ id })], { caller: id, seq: 1 });
      seq += 1;
      const [{ jobs }] = await Promise.all([
        store.claim(Q, { session: 's', seq, count: 1, jobIds: [id] }),
        other.call('change', Q, [id], CANCEL),
      ]);
      const [check] = await store.checkSessions([{ queue: Q, id: 's' }]);
      const [renewed] = await store.renew([{ queue: Q, id: 's', acked }]);
      const told = renewed?.notices.map(({ kind, jobId }) => `${kind} ${jobId === id}`) ?? [];
      acked = renewed?.notices.at(-1)?.number ?? acked;
      await store.renew([{ queue: Q, id: 's', acked }]);
      const [job] = jobs;
      if (job === undefined) return `no run, ${told.length} notices, ${await stateOf(store, id)}`;
      await store.settle(Q, [released(job)]);
      return `a run, noticed ${check?.noticed}, ${told.join()}, ${await stateOf(store, id)}`;
    });
    const right = ['no run, 0 notices, failed', 'a run, noticed true, cancelled true, failed'];
    expect([...seen].filter((end) => !right.includes(end))).toEqual([]);
  });
});

it('a delay with the first step of a cancelled job that is not kept leaves no step behind', async () => {
  const { file, store } = await opened();
  const { id: jobId, token } = await running(store, 'a', '{"removeOnFail":true}');
  await store.change(Q, [jobId], CANCEL);
  const delay: Outcome = { kind: 'delay', jobId, token, delayMs: 60_000, step: { name: 'nap', value: '1' } };
  expect((await store.settle(Q, [delay])).results).toEqual(['done']);
  expect(await stateOf(store, jobId)).toBeUndefined();
  const db = new Database(file, { readonly: true });
  afterwards(() => db.close());
  expect(db.prepare('SELECT count(*) FROM steps').pluck().get()).toBe(0);
});

it('a delay with the first step of a cancelled job fails the job and keeps the step', async () => {
  const { store } = await opened();
  const { id: jobId, token } = await running(store, 'a');
  await store.change(Q, [jobId], CANCEL);
  const delay: Outcome = { kind: 'delay', jobId, token, delayMs: 60_000, step: { name: 'nap', value: '1' } };
  await store.settle(Q, [delay]);
  expect((await store.jobs(Q, [jobId])).jobs[0]).toMatchObject({ state: 'failed', hasSteps: true });
  expect((await store.jobs(Q, { stepsOf: jobId })).steps).toEqual([{ name: 'nap', value: '1' }]);
});

it('notices of a session that has ended are deleted with it', async () => {
  const { file, store } = await opened();
  await running(store, 'a');
  await store.change(Q, ['a'], CANCEL);
  const db = new Database(file, { readonly: true });
  afterwards(() => db.close());
  const count = (): unknown => db.prepare('SELECT count(*) FROM revocations').pluck().get();
  expect(count()).toBe(1);
  await store.closeSessions([{ queue: Q, id: 's' }], 'closed');
  expect([count(), await stateOf(store, 'a')]).toEqual([0, 'failed']);
});
