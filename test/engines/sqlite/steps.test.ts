import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import type { Outcome } from '../../../src/job/outcome.js';
import type { ClaimedJob, NewJob } from '../../../src/job/record.js';
import type { Store, Write } from '../../../src/store/contract/index.js';
import { paced } from '../../support/wait/pace.js';
import { until } from '../../support/wait/until.js';
import { afterwards, newFile, newJob, newSession, openStore, StoreProcess } from './support.js';

const Q = 'q';
const CALL = { caller: 'c', seq: 1 };

async function opened(file = newFile()): Promise<{ file: string; store: Store }> {
  const store = await openStore({ path: file });
  await store.openSession(newSession({ queue: Q, durationMs: 600_000 }));
  return { file, store };
}

let seq = 0;
async function running(store: Store, job: Partial<NewJob> = {}, session = 's'): Promise<ClaimedJob> {
  seq += 1;
  const id = job.id ?? `job-${seq}`;
  await store.add(Q, [newJob({ ...job, id })], { caller: `adder-${seq}`, seq: 1 });
  const { jobs } = await store.claim(Q, { session, seq, count: 1, jobIds: [id] });
  return jobs[0] as ClaimedJob;
}

const stepOf = ({ id, token }: ClaimedJob, name: string): Write => ({ kind: 'step', jobId: id, token, name, value: '1' });
const completed = ({ id: jobId, token }: ClaimedJob, count?: number): Outcome => {
  return { kind: 'completed', jobId, token, value: '1', keep: count === undefined ? {} : { count } };
};
const failed = ({ id: jobId, token }: ClaimedJob, count?: number): Outcome => {
  return { kind: 'failed', jobId, token, reason: 'r', stacktrace: '[]', keep: count === undefined ? {} : { count } };
};

function look(file: string): Database.Database {
  const db = new Database(file);
  afterwards(() => db.close());
  return db;
}

const rowsOf = (db: Database.Database): unknown => db.prepare('SELECT count(*) FROM steps').pluck().get();

describe('the steps of a job that goes, on SQLite,', () => {
  type Way = (store: Store, job: ClaimedJob) => Promise<unknown>;
  const selection = (list: 'waiting' | 'completed'): Way => {
    return (store) => store.change(Q, { lists: [list], limit: 10 }, { kind: 'remove' });
  };
  const after =
    (outcome: (job: ClaimedJob) => Outcome, then: Way): Way =>
    async (store, job) => {
      await store.settle(Q, [outcome(job)]);
      await then(store, job);
    };
  const release = ({ id: jobId, token }: ClaimedJob): Outcome => ({ kind: 'release', jobId, token });
  const ways: Record<string, Way> = {
    'completes and is not kept': (store, job) => store.settle(Q, [completed(job, 0)]),
    'fails and is not kept': (store, job) => store.settle(Q, [failed(job, 0)]),
    'is removed by its id': after(completed, (store, { id }) => store.change(Q, [id], { kind: 'remove' })),
    'waits and is removed by a selection': after(release, selection('waiting')),
    'has completed and is removed by a selection': after(completed, selection('completed')),
    'is trimmed when a later job completes': after(completed, async (store) => {
      await store.settle(Q, [completed(await running(store), 1)]);
    }),
    'is trimmed by its age': after(completed, async (store) => {
      const later = await running(store);
      await store.settle(Q, [{ ...completed(later), keep: { ageMs: -1 } } as Outcome]);
    }),
  };
  for (const [name, way] of Object.entries(ways)) {
    it(`go with it when it ${name}`, async () => {
      const { file, store } = await opened();
      const db = look(file);
      const job = await running(store);
      await store.write(Q, [stepOf(job, 'a'), stepOf(job, 'b')]);
      expect(rowsOf(db)).toBe(2);
      await way(store, job);
      expect(rowsOf(db)).toBe(0);
    });
  }

  it('go with it when an add with the same deduplication id replaces it', async () => {
    const { file, store } = await opened();
    const mode = { id: 'd', replaceDelayed: true };
    await store.add(Q, [newJob({ id: 'old', delayMs: 60_000, deduplication: mode })], CALL);
    await store.write(Q, [{ kind: 'step', jobId: 'old', name: 'signal', value: '1' }]);
    expect(rowsOf(look(file))).toBe(1);
    await store.add(Q, [newJob({ id: 'new', delayMs: 60_000, deduplication: mode })], { ...CALL, seq: 2 });
    expect(rowsOf(look(file))).toBe(0);
  });

  it('go with it when it stalls too often and is not kept', async () => {
    const { file, store } = await opened();
    await store.openSession(newSession({ queue: Q, id: 'strict', durationMs: 600_000, maxStalls: 0 }));
    await store.add(Q, [newJob({ id: 'a', opts: '{"removeOnFail":true}' })], CALL);
    const { jobs } = await store.claim(Q, { session: 'strict', seq: 1, count: 1, timedMs: paced(100) });
    await store.write(Q, [stepOf(jobs[0] as ClaimedJob, 'a')]);
    expect(rowsOf(look(file))).toBe(1);
    await until('the job to fail', async () => (await store.sweep(Q, 10)).failed.length > 0);
    expect(rowsOf(look(file))).toBe(0);
  });
});

it('a job without steps is added, run, delayed, failed and removed without a look at the table of steps', async () => {
  const { file, store } = await opened();
  look(file).exec('DROP TABLE steps');
  const first = await running(store);
  const owned = { jobId: first.id, token: first.token };
  await store.settle(Q, [{ ...owned, kind: 'delay', delayMs: 60_000 }]);
  await store.change(Q, [first.id], { kind: 'promote' });
  seq += 1;
  const again = (await store.claim(Q, { session: 's', seq, count: 1 })).jobs[0] as ClaimedJob;
  await store.settle(Q, [completed(again)]);
  await store.settle(Q, [failed(await running(store), 0)]);
  expect((await store.change(Q, [first.id], { kind: 'remove' })).changed).toEqual([first.id]);
  await expect(store.write(Q, [stepOf(await running(store), 'a')])).rejects.toThrow('no such table');
});

describe('two processes at once on SQLite', () => {
  const ROUNDS = 40;

  /** Runs both calls of each round at once, and returns how often each kind of end came. */
  async function rounds(round: (n: number) => Promise<string>): Promise<Map<string, number>> {
    const ends = new Map<string, number>();
    for (let n = 0; n < ROUNDS; n += 1) {
      const end = await round(n);
      ends.set(end, (ends.get(end) ?? 0) + 1);
    }
    return ends;
  }

  async function signalAgainstDelay(name: string): Promise<Map<string, number>> {
    const { file, store } = await opened();
    const other = await StoreProcess.start(file);
    await other.call('open');
    return rounds(async () => {
      const { id: jobId, token } = await running(store);
      const delay: Outcome = { kind: 'delay', jobId, token, delayMs: 600_000, step: { name: 'wait', value: '1' }, awaits: 'go' };
      const [reply] = await Promise.all([
        store.settle(Q, [delay]),
        other.call('write', Q, [{ kind: 'step', jobId, name, value: '1' }]),
      ]);
      return `${reply.results[0]}, then ${(await store.jobs(Q, [jobId])).jobs[0]?.state}`;
    });
  }

  it('a signal against the delay that awaits it: the job never sleeps over a signal that has come', async () => {
    const ends = await signalAgainstDelay('go');
    expect([...ends.keys()].filter((end) => end !== 'ready, then active' && end !== 'done, then waiting')).toEqual([]);
  });

  it('(N) a signal of another name lets every job sleep', async () => {
    expect([...(await signalAgainstDelay('other')).keys()]).toEqual(['done, then delayed']);
  });

  it('a step against the sweep of its run: either the step is recorded or the token is lost, never both', async () => {
    const { file, store } = await opened();
    const other = await StoreProcess.start(file);
    await other.call('open');
    const ends = await rounds(async (n) => {
      const session = `brief-${n}`;
      await store.openSession(newSession({ queue: Q, id: session, durationMs: 5, maxStalls: 9 }));
      seq += 1;
      await store.add(Q, [newJob({ id: session })], { caller: session, seq: 1 });
      const { jobs } = await store.claim(Q, { session, seq, count: 1, jobIds: [session] });
      const job = jobs[0];
      // On a busy machine the session may have expired before the claim.
      if (job === undefined) return 'no claim';
      const sweeping = (async () => {
        while ((await other.call<{ stalled: string[] }>('sweep', Q, 10)).stalled.length === 0);
      })();
      let written = 0;
      for (let lost = false; !lost; written += 1) {
        const [reply] = await store.write(Q, [stepOf(job, `step ${written}`)]);
        lost = reply?.status === 'lost';
      }
      await sweeping;
      const { steps } = await store.jobs(Q, { stepsOf: job.id });
      const { stalledCounter } = (await store.jobs(Q, [job.id])).jobs[0] ?? {};
      return steps.length === written - 1 && stalledCounter === 1 ? 'each written step, and one stall' : 'wrong';
    });
    expect([...ends.keys()].filter((end) => end !== 'no claim')).toEqual(['each written step, and one stall']);
  });
});
