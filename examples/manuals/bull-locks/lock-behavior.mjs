// Bull's document on locks: what happens to the lock of a job that a worker runs. Times are divided by 50.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import Queue from 'holdfast/bull';

// ── the document ──
const queue = new Queue('processing', {
  settings: {
    lockDuration: 1200, // 60 second lock
    lockRenewTime: 600, // Renew every 30 seconds
  },
});

queue.process(async (job) => {
  // Bull automatically:
  // 1. Takes a lock when job starts
  // 2. Renews the lock every 30 seconds
  // 3. Releases the lock when job completes

  await longRunningTask(job.data);

  return { success: true };
});
// ── around it ──

async function longRunningTask({ id }) {
  const first = await queue.core.getLock(id);
  await sleep(3000);
  const later = await queue.core.getLock(id);
  assert.equal(later.fence, first.fence);
  console.log('the same lock after more than two of its durations, still alive:', later.endsInMs > 0);
}

const job = await queue.add({ id: 'long' }, { jobId: 'long' });
console.log(await job.finished());
assert.equal(await queue.core.getLock('long'), undefined);
console.log('no lock afterwards');
await queue.close();

// prints: the same lock after more than two of its durations, still alive: true
// prints: { success: true }
// prints: no lock afterwards
