// Bull's document on locks: takeLock(). While it is held, no worker runs the job, and nobody else gets the lock.
import assert from 'node:assert/strict';
import Queue from 'holdfast/bull';

const queue = new Queue('myqueue');
const { id: jobId } = await queue.add({ n: 1 });
const runByWorker = [];
async function performWork(data) {
  // Workers that come now find nothing to do.
  queue.process(async (job) => runByWorker.push(job.id));
  await queue.isReady();
  const other = await queue.getJob(jobId);
  console.log('a second take:', await other.takeLock());
  assert.deepEqual(runByWorker, []);
  console.log('working on', data);
}

// ── the document ──
const job = await queue.getJob(jobId);
const lock = await job.takeLock();
if (lock) {
  console.log('Lock acquired:', lock);
  // Do some work...
  await performWork(job.data);
  // Release the lock when done
  await job.releaseLock();
} else {
  console.log('Could not acquire lock - job is being processed');
}
// ── around it ──

assert.equal(typeof lock, 'number');
// Released, it is a waiting job like any other.
await job.finished();
assert.deepEqual(runByWorker, [jobId]);
console.log('afterwards a worker ran it');
await queue.close();

// prints: Lock acquired:
// prints: a second take: false
// prints: working on { n: 1 }
// prints: afterwards a worker ran it
