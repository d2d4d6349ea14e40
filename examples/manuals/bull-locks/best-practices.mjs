// Bull's document on locks: best practices. The external lock of the document is a named lock of the same queue: no second system is needed.
import Queue from 'holdfast/bull';

const automatic = new Queue('automatic');
const manual = new Queue('manual');
const processJob = async (data) => `processed ${data.n}`;
const acquireExternalLock = (resourceId) => manual.core.takeLock(resourceId, { waitMs: 5000 });
const releaseExternalLock = (lock) => lock.release();
let busy = 0;
async function processWithExternalResource(data) {
  busy += 1;
  if (busy > 1) console.log('two at once!');
  await new Promise((resolve) => setTimeout(resolve, 20));
  busy -= 1;
  return `used ${data.resourceId}`;
}

function processAutomatically(queue) {
  // ── the document ──
  // Good: Let Bull handle it automatically
  queue.process(async (job) => {
    return await processJob(job.data);
  });
  // ── around it ──
}

function processWithALock(queue) {
  // ── the document ──
  // Advanced: Manual lock management
  queue.process(async (job) => {
    const externalLock = await acquireExternalLock(job.data.resourceId);

    try {
      return await processWithExternalResource(job.data);
    } finally {
      await releaseExternalLock(externalLock);
    }
  });
  // ── around it ──
}

processAutomatically(automatic);
// Three workers that want the same resource.
const others = [new Queue('manual'), new Queue('manual')];
for (const queue of [manual, ...others]) processWithALock(queue);
console.log(await (await automatic.add({ n: 1 })).finished());
const jobs = await manual.addBulk([1, 2, 3].map(() => ({ data: { resourceId: 'printer' } })));
console.log((await Promise.all(jobs.map((job) => job.finished()))).join(', '));
await automatic.close();
for (const queue of [...others, manual]) await queue.close();

// prints: processed 1
// prints: used printer, used printer, used printer
