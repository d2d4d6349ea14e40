// A backlog worked off by one worker with a handler that does nothing.
import { Queue, Worker } from 'holdfast';
import { fill, timed, withStore } from './scene.mjs';

const CASES = [
  { concurrency: 1, jobs: 4000 },
  { concurrency: 10, jobs: 20_000 },
  { concurrency: 100, jobs: 50_000 },
];

export async function backlog(engine, scale) {
  const figures = [];
  for (const { concurrency, jobs } of CASES) {
    const count = Math.ceil(jobs * scale);
    const seconds = await withStore(engine, (store, url) =>
      workOff(engine === 'memory' ? store : url, store, count, concurrency),
    );
    figures.push({ what: `backlog, concurrency ${concurrency}`, unit: 'jobs/s', value: count / seconds });
  }
  return figures;
}

async function workOff(connection, store, count, concurrency) {
  const queue = new Queue('bench', { connection: store });
  await fill(queue, count);
  let left = count;
  const worker = new Worker('bench', async () => undefined, { connection, concurrency, autorun: false });
  await worker.waitUntilReady();
  const seconds = await timed(async () => {
    const done = new Promise((resolve, reject) => {
      worker.on('error', reject);
      worker.on('completed', () => {
        left -= 1;
        if (left === 0) resolve();
      });
    });
    worker.run().catch(() => undefined);
    await done;
  });
  await worker.close();
  await queue.close();
  return seconds;
}
