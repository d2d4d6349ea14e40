// The discussion of a heartbeat for @boringnode/queue: a job that takes longer than the stalled threshold runs once, also when all slots of
// its worker are busy and another worker is idle; the heartbeat goes on while the worker is being stopped, and ends with it.
import { setTimeout as sleep } from 'node:timers/promises';
import { openStore, Queue, Worker } from 'holdfast';

const queue = new Queue('long');
const store = await openStore();
const runs: string[] = [];
const make = (name: string): Worker =>
  new Worker(
    'long',
    async (job) => {
      runs.push(`${job.id} by ${name}`);
      await sleep(3500);
    },
    { name, concurrency: 2, lockDuration: 1000, stalledInterval: 100 },
  );

const busy = make('first');
await queue.addBulk([1, 2].map((n) => ({ name: 'long', data: { n } })));
let seen = 0;
await new Promise<void>((resolve) => busy.on('active', () => void ((seen += 1) === 2 && resolve())));
const idle = make('second');
await idle.waitUntilReady();
const first = await queue.getLock('1');

// Stopped in the middle of its jobs: they go on being renewed until they have ended.
await busy.close();
console.log(runs.sort().join(', '));
console.log('completed:', await queue.getCompletedCount(), 'stalls:', (await queue.getJob('1'))?.stalledCounter);
const left = (await store.sessions('long')).filter(({ id }) => id === first?.session);
console.log('sessions left of the stopped worker:', left.length);
await idle.close();
await store.close();
await queue.close();

// prints: 1 by first, 2 by first
// prints: completed: 2 stalls: 0
// prints: sessions left of the stopped worker: 0
