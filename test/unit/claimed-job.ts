// A job that is really claimed, and the context that a worker would give it, without a worker: for tests of the handle alone.
import { randomUUID } from 'node:crypto';
import type { JobContext, JobProgress } from '../../src/handle/job-context.js';
import { Job } from '../../src/handle/job.js';
import type { ClaimedJob } from '../../src/job/record.js';
import type { Store } from '../../src/store/contract/index.js';

export interface LockClient {
  context: JobContext;
  session: string;
  progress: [string, JobProgress][];
  /** Claims the next job. */
  take(alias?: string): Promise<Job>;
}

export async function holder(store: Store, queue: string): Promise<LockClient> {
  const session = randomUUID();
  await store.openSession({
    queue,
    id: session,
    owner: { host: 'h', pid: 1, name: 'w', instance: 'i' },
    durationMs: 3_600_000,
    maxStalls: 1,
    slots: 1,
  });
  const progress: [string, JobProgress][] = [];
  let seq = 0;
  const { signal } = new AbortController();
  const lockFor = ({ token, fence }: ClaimedJob) => ({
    held: true,
    token,
    fence,
    expiresAt: Date.now() + 60_000,
    remainingMs: 60_000,
    signal,
    assert: () => undefined,
  });
  const context: JobContext = {
    name: queue,
    prefix: 'bull',
    stored: queue,
    ready: () => Promise.resolve(store),
    settle: async (outcome, fetchNext) => {
      const claim = { session, seq: ++seq, count: 1 };
      const reply = await store.settle(queue, [outcome], { caller: session, seq }, fetchNext ? claim : undefined);
      return { status: reply.results[0] ?? 'missing', next: reply.claimed?.jobs[0] };
    },
    lockFor,
    progressed: (job, value) => progress.push([job.id, value]),
  };
  const take = async (alias?: string): Promise<Job> => {
    const { jobs } = await store.claim(queue, { session, seq: ++seq, count: 1, by: 'tester' });
    const claimed = jobs[0];
    if (claimed === undefined) throw new Error('there is nothing to claim');
    return new Job(context, claimed, { lock: lockFor(claimed), alias });
  };
  return { context, session, progress, take };
}
