// Bull's document on locks: a long-running job that extends its own lock. Nobody needs to: locks are renewed anyway. Times are divided by 25.
import { setTimeout as sleep } from 'node:timers/promises';
import Queue from 'holdfast/bull';

const queue = new Queue('myqueue', { settings: { lockDuration: 1200 } });
queue.on('stalled', (job) => console.log('stalled:', job.id));
const veryLongProcess = () => sleep(3000);

// ── the document ──
queue.process(async (job) => {
  const startTime = Date.now();
  const lockDuration = 1200; // 30 seconds

  // Set up periodic lock extension
  const extendInterval = setInterval(async () => {
    const result = await job.extendLock(lockDuration);
    if (result === 0) {
      console.warn('Failed to extend lock for job', job.id);
      clearInterval(extendInterval);
    }
  }, lockDuration / 2); // Extend halfway through duration

  try {
    // Long-running operation
    await veryLongProcess(job.data);

    return { success: true, duration: Date.now() - startTime };
  } finally {
    clearInterval(extendInterval);
  }
});
// ── around it ──

const job = await queue.add({});
const { success, duration } = await job.finished();
console.log('success:', success, 'longer than two locks:', duration > 2400);
await queue.close();

// prints: success: true longer than two locks: true
