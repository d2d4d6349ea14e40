// Schedules: jobs that come again at set times. They live in the store, so every process may make them when it starts, and any worker keeps
// them going: if the one that runs a job dies, another makes the next job.
import { Queue, Worker } from 'holdfast';

const connection = 'sqlite:schedules.db';
const queue = new Queue('reports', { connection });

// An interval: the first job at once, then one every 300 ms, three in all.
await queue.upsertJobScheduler('pulse', { every: 300, limit: 3 }, { name: 'pulse', data: { ward: 7 } });
// The same call again changes nothing, as when a second process starts.
await queue.upsertJobScheduler('pulse', { every: 300, limit: 3 }, { name: 'pulse', data: { ward: 7 } });
// A time of day in a time zone, over all changes of the clock.
await queue.upsertJobScheduler('night', { pattern: '30 2 * * *', tz: 'Europe/Berlin', overlap: 'skip' }, { name: 'report' });

console.log((await queue.getJobSchedulers(0, -1, true)).map(({ key }) => key));
// prints: [ 'pulse', 'night' ]
const berlin = new Intl.DateTimeFormat('sv', { timeZone: 'Europe/Berlin', timeStyle: 'short' });
console.log('the next nights begin at', (await queue.nextTimes('night', 2)).map((time) => berlin.format(time)).join(' and '));
// prints: the next nights begin at 0

let runs = 0;
const worker = new Worker('reports', async (job) => `${job.name} of ward ${job.data.ward}`, { connection });
worker.on('completed', async (_job, result) => {
  console.log(result);
  // prints: pulse of ward 7
  // prints: pulse of ward 7
  // prints: pulse of ward 7
  runs += 1;
  if (runs < 3) return;
  await worker.close();
  console.log(
    'next jobs that wait:',
    (await queue.getDelayed()).map(({ repeatJobKey }) => repeatJobKey),
  );
  // prints: next jobs that wait: [ 'night' ]
  await queue.close();
});
