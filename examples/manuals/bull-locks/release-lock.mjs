// Bull's document on locks: releaseLock(), and an error in the work.
import Queue from 'holdfast/bull';

const queue = new Queue('myqueue');
const { id: jobId } = await queue.add({ fail: true });
async function doWork(data) {
  console.log('locked while working:', (await queue.core.getLock(jobId)) !== undefined);
  if (data.fail) throw new Error('the work failed');
}

try {
  // ── the document ──
  const job = await queue.getJob(jobId);
  const lock = await job.takeLock();

  if (lock) {
    try {
      // Perform work
      await doWork(job.data);
    } finally {
      // Always release in finally block
      await job.releaseLock();
    }
  }
  // ── around it ──
} catch (error) {
  console.log(error.message);
}

console.log('locked afterwards:', (await queue.core.getLock(jobId)) !== undefined);
const again = await queue.getJob(jobId);
console.log('taken again:', (await again.takeLock()) !== false);
await again.releaseLock();
await queue.close();

// prints: locked while working: true
// prints: the work failed
// prints: locked afterwards: false
// prints: taken again: true
