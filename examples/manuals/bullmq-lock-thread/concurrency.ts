// BullMQ's document on the dedicated lock thread: many jobs at once, all kept by one thread.
import assert from 'node:assert/strict';
import { Queue, Worker } from 'holdfast';

const queue = new Queue('queue');
let running = 0;
let open = (): void => undefined;
const allRunning = new Promise<void>((resolve) => {
  open = resolve;
});
async function processor(): Promise<void> {
  running += 1;
  if (running === 10) open();
  await allRunning;
}

// ── the document ──
const worker = new Worker('queue', processor, {
  concurrency: 10, // Process 10 jobs simultaneously
  useDedicatedLockThread: true, // All jobs managed by dedicated thread
  lockDuration: 60000,
});
// ── around it ──

const monitored: string[][] = [];
void allRunning.then(() => monitored.push(worker.lockManagerThread?.getMonitoredJobs() ?? []));
let left = 10;
const done = new Promise<void>((resolve) => worker.on('completed', () => void ((left -= 1) === 0 && resolve())));
await queue.addBulk(Array.from({ length: 10 }, (_, n) => ({ name: 'job', data: { n } })));
await done;
assert.equal(monitored[0]?.length, 10);
console.log('jobs at once:', running);
await worker.close();
await queue.close();

// prints: jobs at once: 10
