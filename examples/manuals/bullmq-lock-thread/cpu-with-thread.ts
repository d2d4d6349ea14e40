// BullMQ's document on the dedicated lock thread: a CPU-bound job with the thread. Times are halved.
import { once } from 'node:events';
import { Queue, Worker } from 'holdfast';

const iterations = iterationsFor(2500);
const queue = new Queue('queue');

// ── the document ──
// Lock renewal continues independently
const worker = new Worker(
  'queue',
  async () => {
    // Blocks event loop for 5 seconds
    let result = 0;
    for (let i = 0; i < iterations; i++) {
      result += Math.random();
    }
    return result;
  },
  {
    lockDuration: 1000,
    useDedicatedLockThread: true, // Locks remain active!
  },
);
// ── around it ──

worker.on('error', (error) => console.log('error:', error.message));
const completed = once(worker, 'completed');
await queue.add('spin', {});
const [job] = await completed;
console.log('runs:', job.attemptsStarted, 'stalls:', job.stalledCounter);
await worker.close();
await queue.close();

function iterationsFor(ms: number): number {
  const start = performance.now();
  let count = 0;
  for (let result = 0; performance.now() - start < 100; count += 10_000) for (let i = 0; i < 10_000; i++) result += Math.random();
  return Math.round((count * ms) / 100);
}

// prints: runs: 1 stalls: 0
