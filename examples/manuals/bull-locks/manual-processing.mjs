// Bull's document on locks: manual job processing, with a worker running beside it.
import assert from 'node:assert/strict';
import Queue from 'holdfast/bull';

const queue = new Queue('myqueue');
const runByWorker = [];
let workerRuns = false;
async function customProcessing(data) {
  // Wants jobs from now on, and must not get those that are taken.
  if (!workerRuns) {
    workerRuns = true;
    queue.process(async (job) => runByWorker.push(job.id));
    await queue.isReady();
  }
  if (data.fail) throw new Error('it cannot be done');
  return `${data.what} is done`;
}

// ── the document ──
async function manuallyProcessJob(jobId) {
  const job = await queue.getJob(jobId);

  if (!job) {
    throw new Error('Job not found');
  }

  // Try to acquire lock
  const lock = await job.takeLock();

  if (!lock) {
    throw new Error('Job is already being processed');
  }

  try {
    // Process the job
    const result = await customProcessing(job.data);

    // Move to completed
    await job.moveToCompleted(result, false);
  } catch (error) {
    // Move to failed
    await job.moveToFailed({ message: error.message }, false);
    throw error;
  } finally {
    // Always release the lock
    await job.releaseLock();
  }
}
// ── around it ──

// The failing one first: from the first call of customProcessing on, a worker takes whatever waits.
const bad = await queue.add({ fail: true });
await assert.rejects(manuallyProcessJob(bad.id), /it cannot be done/);
console.log(await bad.getState(), (await queue.getJob(bad.id)).failedReason);

await queue.pause(true);
const good = await queue.add({ what: 'the report' });
const next = await queue.add({ what: 'nothing' });
await manuallyProcessJob(good.id);
console.log(await good.getState(), (await queue.getJob(good.id)).returnvalue);
console.log('the next one:', await next.getState());

await queue.resume(true);
await next.finished();
assert.deepEqual(runByWorker, [next.id]);
console.log('the worker ran only the next one');
await assert.rejects(manuallyProcessJob('no-such-job'), /Job not found/);
await queue.close();

// prints: failed it cannot be done
// prints: completed the report is done
// prints: the next one: waiting
// prints: the worker ran only the next one
