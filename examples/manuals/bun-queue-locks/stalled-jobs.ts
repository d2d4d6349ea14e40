// bun-queue's document on distributed locks: stalled job detection. A process that holds a job is killed.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Queue } from 'holdfast/bun-queue';

if (process.argv[2] === 'victim') {
  new Queue('critical-ops').process(() => new Promise(() => process.send?.('running')));
} else {
  // ── the document ──
  const queue = new Queue('critical-ops', {
    distributedLock: true,
    stalledJobCheckInterval: 10000, // Check every 10 seconds
    maxStalledJobRetries: 3, // Max retries for stalled jobs
  });

  queue.on('jobStalled', (jobId) => {
    console.log(`Job ${jobId} has stalled and will be retried`);
  });
  // ── around it ──

  await queue.waitUntilReady();
  const victim = fork(fileURLToPath(import.meta.url), ['victim']);
  const running = new Promise((resolve) => victim.once('message', resolve));
  await queue.add({});
  await running;
  victim.kill('SIGKILL');
  const stalled = new Promise((resolve) => queue.once('jobStalled', resolve));
  const completed = new Promise((resolve) => queue.once('jobCompleted', resolve));
  queue.process(async () => undefined);
  await Promise.all([stalled, completed]);
  console.log('retried');
  await queue.close();
}

// prints: Job 1 has stalled and will be retried
// prints: retried
