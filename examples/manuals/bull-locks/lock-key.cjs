// Bull's document on locks: lockKey(). From CommonJS, as Bull's own examples are.
const Queue = require('holdfast/bull');

async function main() {
  const queue = new Queue('myqueue');
  const { id: jobId } = await queue.add({});

  // ── the document ──
  const job = await queue.getJob(jobId);
  const lockKey = job.lockKey();
  console.log('Job lock key:', lockKey);
  // Output: bull:myqueue:123:lock
  // ── around it ──

  await queue.close();
}

void main();

// prints: Job lock key: bull:myqueue:1:lock
