// bun-queue's document on distributed locks: enabling them. Two instances, 50 jobs, each job once.
// ── the document ──
import { Queue } from 'holdfast/bun-queue';

const queue = new Queue('payments', {
  distributedLock: true,
});
// ── around it ──

const other = new Queue<{ n: number }>('payments', { distributedLock: true });
const runs: number[] = [];
const done = new Promise<void>((resolve) => {
  const count = (): void => void (runs.length === 50 && resolve());
  queue.on('jobCompleted', count);
  other.on('jobCompleted', count);
});
for (const instance of [queue, other]) instance.process(5, async (job) => runs.push(job.data.n));
await Promise.all([queue.waitUntilReady(), other.waitUntilReady()]);
for (let n = 0; n < 50; n++) await queue.add({ n });
await done;
console.log('runs:', runs.length, 'different jobs:', new Set(runs).size);
await queue.close();
await other.close();

// prints: runs: 50 different jobs: 50
