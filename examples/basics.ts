// A queue, a worker, one job. Without a `connection`, both use the SQLite file holdfast.db in the working directory, so the job
// would survive a crash between the two lines that add and run it.
import { Queue, Worker } from 'holdfast';

const queue = new Queue('mail');
await queue.add('welcome', { to: 'ada@example.com' });

const worker = new Worker('mail', async (job) => {
  console.log(`sending ${job.name} to ${job.data.to}`);
  await job.updateProgress(100);
  return { accepted: true };
});
worker.on('progress', (job, progress) => console.log(`job ${job.id} is at ${progress} %`));
worker.on('failed', (job, error) => console.log(`job ${job?.id} failed: ${error.message}`));
// Without a listener errors are printed; they never end the process.
worker.on('error', (error) => console.error(error));

const result = await new Promise((resolve) => worker.once('completed', (_job, value) => resolve(value)));
console.log('the result is', result);
console.log(await queue.getJobCounts('waiting', 'active', 'completed', 'failed'));

await worker.close();
await queue.close();

// prints: sending welcome to ada@example.com
// prints: job 1 is at 100 %
// prints: the result is { accepted: true }
// prints: completed: 1
