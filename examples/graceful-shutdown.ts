// Ending a process without losing or repeating work. `close()` takes no more jobs, waits for the running ones (their locks are renewed
// meanwhile, however long it takes) and hands nothing back as crashed. Without a handler, SIGTERM kills a process like SIGKILL does, and
// what it was working on is recovered as after a crash.
import { Queue, Worker } from 'holdfast';

const connection = 'sqlite:jobs.db';
const queue = new Queue('films', { connection });
const worker = new Worker(
  'films',
  async (job) => {
    console.log('encoding', job.data.film);
    await new Promise((resolve) => setTimeout(resolve, 1000));
    return 'encoded';
  },
  { connection, lockDuration: 300 },
);
worker.on('completed', (job, result) => console.log(job.data.film, result));

process.once('SIGTERM', () => {
  console.log('closing');
  void shutDown();
});

async function shutDown(): Promise<void> {
  await worker.close();
  console.log('still waiting:', await queue.getWaitingCount());
  // When the last queue and worker are closed, nothing keeps the process alive: it ends by itself.
  await queue.close();
}

await queue.addBulk([
  { name: 'encode', data: { film: 'Metropolis' } },
  { name: 'encode', data: { film: 'Solaris' } },
]);
// Stands for the supervisor that stops the process in the middle of a job.
worker.once('active', () => process.kill(process.pid, 'SIGTERM'));

// prints: encoding Metropolis
// prints: closing
// prints: Metropolis encoded
// prints: still waiting: 1
