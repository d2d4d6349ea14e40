// Bull's document on locks: extendLock() in a processor.
import Queue from 'holdfast/bull';

const queue = new Queue('myqueue');
let chunks = 0;
async function processChunk() {
  chunks += 1;
}

// ── the document ──
queue.process(async (job) => {
  // For very long-running jobs, you may need to extend the lock
  for (let i = 0; i < 100; i++) {
    await processChunk(job.data, i);

    // Extend lock every 10 iterations
    if (i % 10 === 0) {
      const extended = await job.extendLock(30000); // 30 seconds

      if (extended === 1) {
        console.log('Lock extended successfully');
      } else {
        console.log('Failed to extend lock');
      }
    }
  }

  return { processed: 100 };
});
// ── around it ──

const job = await queue.add({});
console.log(await job.finished(), chunks);
await queue.close();

// prints: Lock extended successfully
// prints: { processed: 100 } 100
