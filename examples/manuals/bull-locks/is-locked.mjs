// Bull's document on locks: is a job locked? The document reads the key with a Redis client of its own. Here a lock is no key that anybody
// could read or delete behind the queue's back, on any store, so the honest equivalent asks the queue: `queue.core.getLock(jobId)`.
import Queue from 'holdfast/bull';

const queue = new Queue('myqueue');
const { id: jobId } = await queue.add({});
let letGo;
const held = new Promise((resolve) => {
  letGo = resolve;
});

async function look() {
  // ── the document ──
  // Check if job is locked
  const job = await queue.getJob(jobId);
  const lockValue = await queue.core.getLock(job.id);
  if (lockValue) {
    console.log('Job is currently locked (being processed)');
  } else {
    console.log('Job is not locked');
  }
  // ── around it ──
}

await look();
queue.process(() => held);
await new Promise((resolve) => queue.once('active', resolve));
await look();
const { owner, since, fence } = await queue.core.getLock(jobId);
console.log('by this process:', owner.pid === process.pid, since <= Date.now() + 1000, fence > 0);
letGo();
await queue.whenCurrentJobsFinished();
await look();
await queue.close();

// prints: Job is not locked
// prints: Job is currently locked (being processed)
// prints: by this process: true true true
// prints: Job is not locked
