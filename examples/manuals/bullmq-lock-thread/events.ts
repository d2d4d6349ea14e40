// BullMQ's document on the dedicated lock thread: event handling. A job was taken by somebody who never comes
// back, so that its lock lapses, and the lock of a job that runs here is taken away.
import { Queue, Worker, openStore } from 'holdfast';

const connection = process.env['HOLDFAST_URL'] ?? 'sqlite:jobs.db';
const queue = new Queue('myqueue', { connection });
const dead = new Worker('myqueue', null, { connection, lockDuration: 100, skipStalledCheck: true });
await queue.add('left-behind', {});
const left = await dead.getNextJob();

let letGo = (): void => undefined;
const heldUp = new Promise<void>((resolve) => {
  letGo = resolve;
});
const worker = new Worker(
  'myqueue',
  async (job) => {
    if (job.name !== 'stolen' || job.attemptsStarted > 1) return;
    const store = await openStore(connection);
    await store.change('myqueue', [job.id], { kind: 'revoke', reason: 'an operator took it away' });
    await store.close();
    await heldUp;
  },
  { connection, lockDuration: 1000, lockRenewTime: 100, stalledInterval: 50, useDedicatedLockThread: true },
);
const stalled = new Promise((resolve) => worker.once('stalled', resolve));
const lost = new Promise((resolve) => worker.once('lockRenewalFailed', resolve));
console.log(left?.id === '1' ? 'job 1 is left behind' : 'something else was taken');

// ── the document ──
worker.on('stalled', (jobId, prev) => {
  console.log(`Job ${jobId} was stalled and moved from ${prev}`);
});

worker.on('error', (error) => {
  if (error.message.includes('could not renew lock')) {
    console.log('Lock renewal failed for a job');
  }
});
// ── around it ──

await stalled;
await queue.add('stolen', {});
await lost;
// The listener above runs in the same turn, right after the one that resolved this.
await new Promise((resolve) => setImmediate(resolve));
letGo();
await worker.close();
await dead.close();
await queue.close();

// prints: job 1 is left behind
// prints: Job 1 was stalled and moved from active
// prints: Lock renewal failed for a job
