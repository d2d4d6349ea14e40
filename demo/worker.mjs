// A worker process of the demo. Tells the parent what happens; the parent decides what was observed.
import { Worker } from 'holdfast';

const { queue, url, thread, lockDuration, spinMs, name, waitMs, stalledInterval } = JSON.parse(process.argv[2]);
const tell = (event) => process.send?.({ ...event, worker: name });

const worker = new Worker(
  queue,
  async (job) => {
    tell({ type: 'run', jobId: job.id, fence: job.lock.fence });
    // Only the first run blocks, so that act 1 comes to an end.
    if (spinMs > 0 && job.attemptsStarted === 1) {
      // No await: nothing else of this process' event loop can run, timers included.
      const end = process.hrtime.bigint() + BigInt(spinMs) * 1_000_000n;
      while (process.hrtime.bigint() < end);
    } else await new Promise((resolve) => setTimeout(resolve, waitMs));
    tell({ type: 'end', jobId: job.id, fence: job.lock.fence, held: job.lock.held });
    return name;
  },
  { connection: url, name, lockDuration, stalledInterval, maxStalledCount: 5, useDedicatedLockThread: thread },
);
worker.on('ready', () => tell({ type: 'ready' }));
worker.on('completed', (job) => tell({ type: 'accepted', jobId: job.id }));
worker.on('stalled', (jobId) => tell({ type: 'stalled', jobId }));
worker.on('error', (error) =>
  tell({ type: error.code === 'LOCK_LOST' ? 'refused' : 'error', jobId: error.jobId, message: error.message }),
);
process.on('message', (message) => {
  if (message === 'close') void worker.close().then(() => process.disconnect());
});
