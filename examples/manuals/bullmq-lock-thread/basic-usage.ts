// BullMQ's document on the dedicated lock thread: basic usage.
import { once } from 'node:events';

const redisConnection = process.env['HOLDFAST_URL'] ?? 'sqlite:jobs.db';
async function performHeavyComputation(data: { n: number }): Promise<void> {
  console.log('computing', data.n);
}

// ── the document ──
import { Queue, Worker } from 'holdfast';

const worker = new Worker(
  'myqueue',
  async (job) => {
    // Long-running or CPU-intensive work
    await performHeavyComputation(job.data);
    return { success: true };
  },
  {
    connection: redisConnection,
    useDedicatedLockThread: true, // Enable dedicated lock thread
  },
);
// ── around it ──

const queue = new Queue('myqueue', { connection: redisConnection });
const completed = once(worker, 'completed');
await queue.add('heavy', { n: 7 });
const [, result] = await completed;
console.log('result', result);
await worker.close();
await queue.close();

// prints: computing 7
// prints: result { success: true }
