// Several processes on one SQLite file. This program starts itself twice as a worker, kills one of the two in the middle of a job, and
// sees the job finish in the other. With default options that takes about three seconds: the file lock of a dead process is noticed
// within a second, and its session lives on for a grace of two.
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Queue, QueueEvents, Worker } from 'holdfast';

const connection = 'sqlite:shared.db';

if (process.argv[2] === 'worker') runWorker();
else await runParent();

function runWorker(): void {
  const worker = new Worker(
    'parcels',
    async (job) => {
      // The first run takes for ever: its process will not survive it.
      if (job.attemptsStarted === 1) await new Promise(() => undefined);
      return `delivered by run ${job.attemptsStarted}`;
    },
    { connection, name: String(process.pid) },
  );
  process.once('message', () => void worker.close().then(() => process.disconnect()));
}

async function runParent(): Promise<void> {
  const queue = new Queue('parcels', { connection });
  const events = new QueueEvents('parcels', { connection });
  await events.waitUntilReady();
  const active = new Promise<void>((resolve) => events.once('active', () => resolve()));
  events.on('stalled', () => console.log('its worker was found dead'));

  const children = [startChild(), startChild()];
  const job = await queue.add('parcel', { weight: 3 });
  await active;

  const owner = (await queue.getJob(job.id))?.processedBy;
  const killed = children.find(({ pid }) => String(pid) === owner);
  killed?.kill('SIGKILL');
  console.log('killed the worker that had the job');

  console.log(await job.waitUntilFinished(events, 15_000));
  const finished = await queue.getJob(job.id);
  console.log('stalls:', finished?.stalledCounter, '- in another process:', finished?.processedBy !== owner);

  for (const child of children) if (child !== killed) child.send('close');
  await events.close();
  await queue.close();
}

function startChild(): ChildProcess {
  return fork(fileURLToPath(import.meta.url), ['worker']);
}

// prints: killed the worker that had the job
// prints: its worker was found dead
// prints: delivered by run 2
// prints: stalls: 1 - in another process: true
