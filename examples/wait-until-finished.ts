// What happens in a queue, told to anybody who listens, in whatever process; and waiting for the result of one job.
import { Queue, QueueEvents, Worker } from 'holdfast';

const connection = 'sqlite:jobs.db';
const queue = new Queue('sums', { connection });
const events = new QueueEvents('sums', { connection });
await events.waitUntilReady();

let lastEventId = '0';
events.on('added', ({ jobId, name }, id) => {
  console.log(`${jobId} was added: ${name}`);
  lastEventId = id;
});
events.on('completed', ({ jobId, returnvalue }) => console.log(`${jobId} completed: ${returnvalue}`));
events.on('failed', ({ jobId, failedReason }) => console.log(`${jobId} failed: ${failedReason}`));

const worker = new Worker(
  'sums',
  async (job) => {
    if (!Array.isArray(job.data)) throw new Error('this is not a list');
    return job.data.reduce((sum: number, each: number) => sum + each, 0);
  },
  { connection },
);

const good = await queue.add('sum', [1, 2, 3]);
console.log('the sum is', await good.waitUntilFinished(events, 5000));

const bad = await queue.add('sum', 'one');
await bad.waitUntilFinished(events, 5000).catch((error) => console.log(`${error.code}: ${error.message}`));
await events.close();

// A listener that was away reads on from the last id that it saw.
const later = new QueueEvents('sums', { connection, lastEventId, autorun: false });
const told = new Promise<{ failedReason: string }>((resolve) => later.once('failed', resolve));
void later.run();
console.log('missed meanwhile:', (await told).failedReason);

await later.close();
await worker.close();
await queue.close();

// prints: 1 was added: sum
// prints: the sum is 6
// prints: JOB_FINISHED: this is not a list
// prints: missed meanwhile: this is not a list
