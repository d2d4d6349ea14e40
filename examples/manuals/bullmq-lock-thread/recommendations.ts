// BullMQ's document on the dedicated lock thread: configuration recommendations.
import { once } from 'node:events';
import { Queue, Worker } from 'holdfast';

const processor = async (): Promise<string> => 'done';

// ── the document ──
// For CPU-intensive jobs
const cpuIntensiveWorker = new Worker('cpu-queue', processor, {
  useDedicatedLockThread: true,
  lockDuration: 60000, // Longer locks for safety
  lockRenewTime: 20000, // More frequent renewal
  stalledInterval: 30000, // Regular stalled checks
  concurrency: 1, // Limit concurrency for CPU-bound work
});

// For I/O intensive jobs
const ioIntensiveWorker = new Worker('io-queue', processor, {
  useDedicatedLockThread: true,
  lockDuration: 30000,
  lockRenewTime: 10000, // Frequent renewal for reliability
  stalledInterval: 15000, // Quick stalled detection
  concurrency: 5, // Higher concurrency for I/O
});
// ── around it ──

for (const [name, worker] of [
  ['cpu-queue', cpuIntensiveWorker],
  ['io-queue', ioIntensiveWorker],
] as const) {
  const queue = new Queue(name);
  const completed = once(worker, 'completed');
  await queue.add('job', {});
  const [, result] = await completed;
  console.log(name, result);
  await worker.close();
  await queue.close();
}

// prints: cpu-queue done
// prints: io-queue done
