// Taking jobs by hand: a worker without a processor, getNextJob, and a LockManager that keeps the locks of what was taken. A lock that
// was taken by hand is renewed by nobody else: a job that is forgotten comes back when `lockDuration` has passed.
import { setTimeout as sleep } from 'node:timers/promises';
import { LockManager, Queue, Worker } from 'holdfast';

const connection = 'sqlite:jobs.db';
const queue = new Queue('scans', { connection });
await queue.addBulk([
  { name: 'scan', data: { page: 1 } },
  { name: 'scan', data: { page: 2 } },
]);

const worker = new Worker('scans', null, { connection, lockDuration: 400 });
const locks = new LockManager(worker, {
  lockDuration: 400,
  onLockRenewalFailed: (jobIds) => console.log('lost:', jobIds),
});
locks.start();

for (;;) {
  const job = await worker.getNextJob(undefined, { block: false });
  if (job === undefined) break;
  const token = job.token as string;
  locks.trackJob(job.id, token);
  try {
    await sleep(1000); // Longer than two locks.
    await job.moveToCompleted(`page ${job.data.page} is scanned`, token, false);
  } catch (error) {
    await job.moveToFailed(error as Error, token, false);
  } finally {
    // After the finish was acknowledged, not before: until then the lock has to last.
    locks.untrackJob(job.id);
  }
  console.log(await job.getState(), job.returnvalue);
}

await locks.close();
await worker.close();
await queue.close();

// prints: completed page 1 is scanned
// prints: completed page 2 is scanned
