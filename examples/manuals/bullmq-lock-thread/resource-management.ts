// BullMQ's document on the dedicated lock thread: resource management. On SIGTERM the running job ends, its lock renewed meanwhile, the
// thread stops, and the process exits by itself.
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue, Worker } from 'holdfast';

const queue = new Queue('queue');
const worker = new Worker(
  'queue',
  async () => {
    await sleep(2500);
    console.log('the job has ended');
  },
  { lockDuration: 1000, useDedicatedLockThread: true },
);
worker.on('error', (error) => console.log('error:', error.message));

// ── the document ──
// Ensure proper cleanup
process.on('SIGTERM', async () => {
  await worker.close(); // This will also stop the dedicated thread
});
// ── around it ──

worker.once('closed', () => {
  console.log('closed, thread running:', worker.lockManagerThread?.isRunning());
  void queue.close();
});
const active = once(worker, 'active');
await queue.add('job', {});
await active;
process.kill(process.pid, 'SIGTERM');

// prints: the job has ended
// prints: closed, thread running: false
