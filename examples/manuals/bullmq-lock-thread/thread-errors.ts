// BullMQ's document on the dedicated lock thread: the thread cannot start. Holdfast says so as documented, and goes on better than
// documented: locks are renewed on the event loop meanwhile.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Job, Queue, Worker } from 'holdfast';

const queue = new Queue('queue');
const worker = new Worker('queue', async () => sleep(2500), {
  lockDuration: 1000,
  useDedicatedLockThread: true,
  lockThreadEntry: './there-is-no-such-file.js',
});

// ── the document ──
worker.on('error', (error) => {
  if (error.message.includes('Failed to initialize dedicated lock thread')) {
    // Handle initialization failure
    console.error('Dedicated lock thread failed to start:', error);
  }
});
// ── around it ──

worker.once('error', (error) => console.log(error.message.split(':')[0]));
const completed = new Promise<Job>((resolve) => worker.once('completed', resolve));
await queue.add('job', {});
const job = await completed;
console.log('runs:', job.attemptsStarted, 'stalls:', job.stalledCounter);
await worker.close();
await queue.close();

// prints: Failed to initialize dedicated lock thread
// prints: runs: 1 stalls: 0
