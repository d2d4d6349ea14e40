// A worker in a worker_thread that is terminated: no code of its own runs any more, and its lock thread ends with it. Workers in the same
// process and in others find its jobs long before the lock expires.
import { spawn } from 'node:child_process';
import { Worker as Thread } from 'node:worker_threads';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { LOCK_ENGINES, newScene, work } from '../support/scenes/scene.js';
import { paced } from '../support/wait/pace.js';
import { stopwatch } from '../support/wait/stopwatch.js';

const LOCK_MS = 60_000;
/** The grace of a crash is 2 s. */
const SOON_MS = 20_000;
const fixture = fileURLToPath(new URL('./fixtures/worker-in-thread.mjs', import.meta.url));

/** A thread whose worker runs a job. */
async function startThread(connection: unknown): Promise<Thread> {
  const thread = new Thread(fixture, { workerData: { connection, lockDuration: LOCK_MS } });
  onTestFinished(async () => void (await thread.terminate()));
  await new Promise((resolve, reject) => thread.once('message', resolve).once('error', reject));
  return thread;
}

test.each(LOCK_ENGINES)(
  'another worker of the process soon runs the job of a terminated worker_thread, on %s',
  async (engine) => {
    const scene = await newScene(engine);
    const { id } = await scene.queue.add('job', {});
    const thread = await startThread(scene.url);
    const { worker, log } = work(scene, async () => 'done', { lockDuration: LOCK_MS });
    await worker.waitUntilReady();
    const took = stopwatch();
    await thread.terminate();
    await log.moment('completed');
    expect(took()).toBeLessThan(SOON_MS);
    expect(await scene.queue.getJob(id)).toMatchObject({ returnvalue: 'done', attemptsStarted: 2, stalledCounter: 1 });
  },
  paced(60_000),
);

test('a living worker_thread keeps its job while that of a terminated one is found, on sqlite', {
  timeout: paced(60_000),
}, async () => {
  const scene = await newScene('sqlite');
  const [kept, lost] = [await scene.queue.add('kept', {}), await scene.queue.add('lost', {})];
  await startThread(scene.url);
  const doomed = await startThread(scene.url);
  const { worker, log } = work(scene, async () => 'done', { lockDuration: LOCK_MS });
  await worker.waitUntilReady();
  await doomed.terminate();
  await log.moment('completed');
  expect(await scene.queue.getJob(lost.id)).toMatchObject({ returnvalue: 'done', stalledCounter: 1 });
  expect((await scene.store.sessions('work')).filter(({ suspected }) => suspected)).toEqual([]);
  expect(await scene.queue.getJob(kept.id)).toMatchObject({ attemptsStarted: 1, stalledCounter: 0 });
  expect(await kept.getState()).toBe('active');
});

test('a worker of another process soon runs the job of a terminated worker_thread, on sqlite', {
  timeout: paced(60_000),
}, async () => {
  const scene = await newScene('sqlite');
  await scene.queue.add('job', {});
  const thread = await startThread(scene.url);
  const other = `import { Worker } from 'holdfast';
const worker = new Worker('work', async () => 'done', { connection: ${JSON.stringify(scene.url)}, lockDuration: ${LOCK_MS} });
await worker.waitUntilReady();
console.log('ready');
worker.once('completed', () => worker.close());`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', other], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  await new Promise((resolve) => child.stdout.once('data', resolve));
  const took = stopwatch();
  await thread.terminate();
  expect(await ended).toBe(0);
  expect(took()).toBeLessThan(SOON_MS);
});
