// Attempts and backoff. A handler that throws is tried again until `attempts` runs have failed; UnrecoverableError ends it at once.
import { Queue, UnrecoverableError, Worker } from 'holdfast';

const connection = 'sqlite:jobs.db';
const queue = new Queue('payments', { connection, defaultJobOptions: { attempts: 3 } });

const worker = new Worker(
  'payments',
  async (job) => {
    if (job.name === 'no-card') throw new UnrecoverableError('there is no card to charge');
    if (job.name === 'flaky' && job.attemptsMade < 2) throw new Error('the bank did not answer');
    if (job.name === 'hopeless') throw new Error('the account is closed');
    return `paid after ${job.attemptsStarted} runs`;
  },
  {
    connection,
    settings: {
      // Names of your own are looked up here: milliseconds until the next attempt, or -1 for none.
      backoffStrategy: (attemptsMade, type) => (type === 'patient' ? attemptsMade * 10 : -1),
    },
  },
);
worker.on('failed', (job, error) => console.log(`${job?.name}, attempt ${job?.attemptsMade}: ${error.message}`));
worker.on('completed', (job, result) => console.log(`${job.name}: ${result}`));

await queue.add('no-card', {});
// 20 ms, then 40 ms, each less up to a half of it, so that jobs that failed together do not come back together.
await queue.add('flaky', {}, { backoff: { type: 'exponential', delay: 20, jitter: 0.5 } });
await queue.add('hopeless', {}, { backoff: { type: 'patient' } });

while ((await queue.getJobCountByTypes('waiting', 'active', 'delayed')) > 0)
  await new Promise((resolve) => setTimeout(resolve, 20));

for (const job of await queue.getFailed()) console.log(`${job.name} has ${job.stacktrace.length} stack traces`);
// Failed jobs stay until they are removed, and can be tried again.
await queue.pause();
await queue.retryJobs({ state: 'failed' });
console.log('waiting again:', await queue.getJobCountByTypes('waiting'));

await worker.close();
await queue.close();

// prints: no-card, attempt 1: there is no card to charge
// prints: flaky, attempt 1: the bank did not answer
// prints: flaky: paid after 3 runs
// prints: no-card has 1 stack traces
// prints: waiting again: 2
