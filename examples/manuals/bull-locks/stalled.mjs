// Bull's document on locks: stalled jobs. A process of its own takes the job and is killed. Its job is found about three seconds later:
// nobody has to wait for a whole interval.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { openStore } from 'holdfast';
import Queue from 'holdfast/bull';

if (process.argv[2] === 'victim') {
  const victim = new Queue('myqueue');
  victim.process(() => new Promise(() => process.send('running')));
} else {
  // ── the document ──
  const queue = new Queue('myqueue', {
    settings: {
      stalledInterval: 30000, // Check for stalled jobs every 30 seconds
      maxStalledCount: 1, // Max times a job can be stalled before permanent failure
    },
  });

  queue.on('stalled', (job) => {
    console.log(`Job ${job.id} stalled - lock expired without completion`);
  });

  queue.on('lock-extension-failed', (job, err) => {
    console.error(`Failed to extend lock for job ${job.id}:`, err);
  });
  // ── around it ──

  queue.on('lock-extension-failed', (job) => console.log('lost the lock of job', job.id));

  const stalled = new Promise((resolve) => {
    queue.once('stalled', resolve);
  });
  const child = fork(fileURLToPath(import.meta.url), ['victim']);
  const running = new Promise((resolve) => child.once('message', resolve));
  const job = await queue.add({});
  await running;
  child.kill('SIGKILL');
  queue.process(async () => 'done by the second run');
  // Whoever listens may hear of the end of the second run before that of the first.
  const [value] = await Promise.all([job.finished(), stalled]);
  console.log(value);

  // A lock that is taken away while its job runs: its worker learns of it when it renews, here ten times a second.
  const other = new Queue('other', { settings: { lockDuration: 1000, lockRenewTime: 100 } });
  for (const listener of queue.listeners('lock-extension-failed')) other.on('lock-extension-failed', listener);
  other.on('error', () => undefined);
  const lost = new Promise((resolve) => {
    other.once('lock-extension-failed', resolve);
  });
  other.process(async ({ id }) => {
    await other.pause();
    const store = await openStore();
    await store.change('other', [id], { kind: 'revoke', reason: 'an operator took it away' });
    await store.close();
    await lost;
  });
  await other.add({});
  await lost;
  await other.close();
  await queue.close();
}

// prints: Job 1 stalled - lock expired without completion
// prints: done by the second run
// prints: lost the lock of job 1
