// BullMQ's document on the dedicated lock thread: migration guide. Both workers tell the same.
import { Queue, Worker } from 'holdfast';

const redisConnection = process.env['HOLDFAST_URL'] ?? 'sqlite:jobs.db';
const processor = async (): Promise<string> => 'done';

console.log('before', await eventsOf(before()));
console.log('after', await eventsOf(after()));

function before(): Worker {
  // ── the document ──
  // Before
  const worker = new Worker('queue', processor, {
    connection: redisConnection,
    lockDuration: 30000,
  });
  // ── around it ──
  return worker;
}

function after(): Worker {
  // ── the document ──
  // After
  const worker = new Worker('queue', processor, {
    connection: redisConnection,
    lockDuration: 30000,
    useDedicatedLockThread: true, // Add this line
  });
  // ── around it ──
  return worker;
}

async function eventsOf(worker: Worker): Promise<string> {
  const told: string[] = [];
  for (const event of ['ready', 'active', 'completed', 'drained', 'error'] as const) worker.on(event, () => told.push(event));
  const queue = new Queue('queue', { connection: redisConnection });
  const drained = new Promise<void>((resolve) => worker.once('completed', () => worker.once('drained', resolve)));
  await worker.waitUntilReady();
  await queue.add('job', {});
  await drained;
  await worker.close();
  await queue.close();
  // Whether an empty queue is told of at the start depends on which comes first, the worker or the job.
  return told.filter((event, index) => event !== 'drained' || index === told.length - 1).join(' ');
}

// prints: before ready active completed drained
// prints: after ready active completed drained
