// Bull's document on locks: error handling, with a lock that is lost meanwhile.
import { openStore } from 'holdfast';
import Queue from 'holdfast/bull';

const queue = new Queue('myqueue');
async function processJob(job) {
  if (job.data.what === 'fail') throw new Error('it failed');
  if (job.data.what === 'lose') {
    const store = await openStore();
    await store.change('myqueue', [job.id], { kind: 'revoke', reason: 'an operator took it away' });
    await store.close();
  }
}
const console = { log: globalThis.console.log, error: (what, error) => globalThis.console.log(what, error.message) };

// ── the document ──
async function safeProcessJob(jobId) {
  const job = await queue.getJob(jobId);
  const lock = await job.takeLock();

  if (!lock) {
    console.log('Job is locked by another worker');
    return;
  }

  try {
    await processJob(job);
  } catch (error) {
    console.error('Error processing job:', error);
    throw error;
  } finally {
    // Ensure lock is always released
    try {
      await job.releaseLock();
    } catch (releaseError) {
      console.error('Error releasing lock:', releaseError);
    }
  }
}
// ── around it ──

const [fine, fail, lose, taken] = await queue.addBulk(
  ['be fine', 'fail', 'lose', 'be taken'].map((what) => ({ data: { what } })),
);
await safeProcessJob(fine.id);
await safeProcessJob(fail.id).catch((error) => console.log('thrown:', error.message));
await safeProcessJob(lose.id);
await taken.takeLock();
await safeProcessJob(taken.id);
await taken.releaseLock();
await queue.close();

// prints: Error processing job: it failed
// prints: thrown: it failed
// prints: Error releasing lock: Could not release lock for job 3
// prints: Job is locked by another worker
