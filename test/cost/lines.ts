// What one job costs a store, line by line: a line is what is done with the jobs, and in how large batches.
import assert from 'node:assert/strict';
import type { Outcome } from '../../src/job/outcome.js';
import type { ClaimedJob } from '../../src/job/record.js';
import type { Store } from '../../src/store/contract/index.js';
import { completed, failed, retried } from '../../src/testing/conformance/samples.js';
import { newJob, newSession } from '../unit/store-samples.js';
import type { Counts, Engine } from './counters.js';

const ENDS: Record<string, (job: ClaimedJob) => Outcome> = {
  kept: (job) => completed(job),
  removed: (job) => completed(job, { count: 0 }),
  failed: (job) => failed(job),
  retried: (job) => retried(job),
};

/** By batch: calls that make the caches of the engine warm, and calls that are counted. */
const CALLS: Record<number, [warm: number, counted: number]> = { 1: [50, 320], 10: [20, 128], 100: [5, 64] };
const SIZES = Object.keys(CALLS).map(Number);

export const LINES = [
  ...['add', ...Object.keys(ENDS)].flatMap((kind) => SIZES.map((batch) => ({ kind, batch }))),
  { kind: 'renew', batch: 1 },
  { kind: 'idle', batch: 1 },
];

export type Line = (typeof LINES)[number];

export const titleOf = (engine: string, { kind, batch }: Line): string => `${engine} ${kind} ${batch}`;

/** Returns the counts of one job. `plant`: changes the store before it is used. */
export async function costOf(engine: Engine, { kind, batch }: Line, plant?: (store: Store) => void): Promise<Counts> {
  const { store, read, rest, close } = await engine.newGround();
  try {
    plant?.(store);
    const [warm, counted] = CALLS[batch] as [number, number];
    const call = await prepare(store, kind, batch, warm + counted);
    const repeat = async (times: number): Promise<Counts> => {
      for (let n = 0; n < times; n += 1) {
        await call();
        await rest?.();
      }
      return read();
    };
    const before = await repeat(warm);
    const after = await repeat(counted);
    const each = (name: string): number => ((after[name] ?? 0) - (before[name] ?? 0)) / (counted * batch);
    return Object.fromEntries(Object.keys(after).map((name) => [name, Number(each(name).toPrecision(5))]));
  } finally {
    await close();
  }
}

/** Returns the call that is repeated. */
async function prepare(store: Store, kind: string, batch: number, calls: number): Promise<() => Promise<unknown>> {
  // The session that claims, and the producer, number their calls.
  let [claims, adds] = [0, 0];
  await store.openSession(newSession({ slots: batch, durationMs: 3_600_000 }));
  const add = async (count: number): Promise<void> => {
    const jobs = Array.from({ length: count }, () => newJob({ timestamp: 1_700_000_000_000 }));
    const replies = await store.add('q', jobs, { caller: 'p', seq: (adds += 1) });
    assert.equal(replies.filter(({ status }) => status === 'added').length, count);
  };
  const request = () => ({ session: 's', seq: (claims += 1), count: batch, by: 'w' });
  if (kind === 'add') return () => add(batch);
  if (kind === 'renew') return () => store.renew([{ queue: 'q', id: 's', acked: 0 }]);
  if (kind === 'idle') return () => store.claim('q', request());
  const end = ENDS[kind] as (job: ClaimedJob) => Outcome;
  for (let left = (calls + 1) * batch; left > 0; left -= 100) await add(Math.min(100, left));
  let { jobs } = await store.claim('q', request());
  return async () => {
    const claim = request();
    const reply = await store.settle('q', jobs.map(end), { caller: 's', seq: claim.seq }, claim);
    jobs = reply.claimed?.jobs ?? [];
    assert.deepEqual([reply.results.filter((result) => result === 'done').length, jobs.length], [batch, batch]);
  };
}
