// BullMQ's document on the dedicated lock thread: a CPU-bound job without the thread. In Holdfast the thread is on unless it is turned off,
// so the harm that the document warns of has to be asked for: another process runs the job as well, and the late result is refused.
// Times are halved.
import { fork } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Queue, Worker } from 'holdfast';

const iterations = iterationsFor(2500);
const queue = new Queue('queue');
if (process.argv[2] === 'other') await takeOver();
else await spin();
await queue.close();

async function spin(): Promise<void> {
  // ── the document ──
  // This can block lock renewal
  const worker = new Worker(
    'queue',
    async () => {
      // Blocks event loop for 5 seconds
      let result = 0;
      for (let i = 0; i < iterations; i++) {
        result += Math.random();
      }
      return result;
    },
    {
      lockDuration: 1000, // Job will lose lock!
      useDedicatedLockThread: false,
    },
  );
  // ── around it ──

  const refused = new Promise<void>((resolve) => {
    worker.on('error', (error) => {
      if (!error.message.includes('Could not settle job 1')) return;
      console.log('the late result was refused');
      resolve();
    });
  });
  const other = fork(fileURLToPath(import.meta.url), ['other']);
  const ended = new Promise((resolve) => other.once('exit', resolve));
  await new Promise((resolve) => other.once('message', resolve));
  await queue.add('spin', {});
  await refused;
  await ended;
  await worker.close();
}

async function takeOver(): Promise<void> {
  await queue.waitUntilReady();
  process.send?.('ready');
  while ((await queue.getLock('1')) === undefined) await sleep(10);
  const worker = new Worker('queue', async () => 'done', { stalledInterval: 100 });
  await new Promise<void>((resolve) => worker.once('completed', () => resolve()));
  console.log('another process ran the job meanwhile');
  await worker.close();
  process.disconnect();
}

function iterationsFor(ms: number): number {
  const start = performance.now();
  let count = 0;
  for (let result = 0; performance.now() - start < 100; count += 10_000) for (let i = 0; i < 10_000; i++) result += Math.random();
  return Math.round((count * ms) / 100);
}

// prints: another process ran the job meanwhile
// prints: the late result was refused
