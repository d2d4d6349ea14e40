// bun-queue's document on distributed locks: configuration. A process that holds a job is killed, and the job is run again. That does
// not take a check interval nor a whole lock: the death of a process is noticed by itself, about three seconds after it.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Queue } from 'holdfast/bun-queue';

if (process.argv[2] === 'victim') {
  new Queue('critical-tasks').process(() => new Promise(() => process.send?.('running')));
} else {
  // ── the document ──
  const queue = new Queue('critical-tasks', {
    distributedLock: true,
    stalledJobCheckInterval: 5000, // Check for stalled jobs every 5s
    maxStalledJobRetries: 3, // Retry stalled jobs up to 3 times
  });
  // ── around it ──

  const victim = fork(fileURLToPath(import.meta.url), ['victim']);
  const running = new Promise((resolve) => victim.once('message', resolve));
  const job = await queue.add({});
  await running;
  victim.kill('SIGKILL');
  const completed = new Promise<unknown[]>((resolve) => queue.once('jobCompleted', (...told) => resolve(told)));
  queue.process(async (again) => `run ${again.attemptsStarted}`);
  console.log(...(await completed));
  console.log('stalls:', (await queue.getJob(job.id))?.stalledCounter);
  await queue.close();
}

// prints: 1 run 2
// prints: stalls: 1
