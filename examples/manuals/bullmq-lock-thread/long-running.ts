// BullMQ's document on the dedicated lock thread: a job that outlives its lock many times. Times are divided by 25.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue, Worker } from 'holdfast';

const queue = new Queue('queue');
async function processLargeDataset(data: { rows: number }): Promise<void> {
  await sleep(4800);
  console.log(`${data.rows} rows are processed`);
}

// ── the document ──
const worker = new Worker(
  'queue',
  async (job) => {
    // Long-running job that exceeds lock duration
    await processLargeDataset(job.data); // Takes 2 minutes
    return { processed: true };
  },
  {
    lockDuration: 1200, // 30 second locks
    lockRenewTime: 600, // Renew every 15 seconds
    useDedicatedLockThread: true, // Ensures continuous renewal
  },
);
// ── around it ──

let renewals = 0;
worker.on('locksRenewed', () => (renewals += 1));
worker.on('error', (error) => console.log('error:', error.message));
const completed = once(worker, 'completed');
await queue.add('dataset', { rows: 1_000_000 });
const [job, result] = await completed;
assert.ok(renewals >= 4, `only ${renewals} renewals`);
console.log('runs:', job.attemptsStarted, result);
await worker.close();
await queue.close();

// prints: 1000000 rows are processed
// prints: runs: 1 { processed: true }
