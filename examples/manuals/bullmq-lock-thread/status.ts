// BullMQ's document on the dedicated lock thread: status checking.
import { once } from 'node:events';
import { Queue, Worker } from 'holdfast';

const queue = new Queue('queue');
let letGo = (): void => undefined;
const held = new Promise<void>((resolve) => {
  letGo = resolve;
});
const worker = new Worker('queue', () => held, { useDedicatedLockThread: true });
const active = once(worker, 'active');
await queue.add('job', {});
await active;

// ── the document ──
// Check if dedicated thread is running
if (worker['lockManagerThread']?.isRunning()) {
  console.log('Dedicated lock thread is active');

  // Get currently monitored jobs
  const monitoredJobs = worker['lockManagerThread'].getMonitoredJobs();
  console.log(`Monitoring ${monitoredJobs.length} jobs`);
}
// ── around it ──

letGo();
await worker.close();
console.log('running after close:', worker.lockManagerThread?.isRunning());
await queue.close();

// prints: Dedicated lock thread is active
// prints: Monitoring 1 jobs
// prints: running after close: false
