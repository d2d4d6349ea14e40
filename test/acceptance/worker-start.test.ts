// A worker claims nothing before it is known who renews its locks. With the lock thread, hence from the built package.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { WorkerProcess, fixture } from '../support/processes/worker-process.js';
import { newScene, type Scene, work, type Working } from '../support/scenes/scene.js';
import { paced } from '../support/wait/pace.js';
import { until } from '../support/wait/until.js';

/** An entry file for the lock thread of this scene. */
function entry({ folder }: Scene, source: string): string {
  const file = join(folder, 'thread.mjs');
  writeFileSync(file, source);
  return file;
}

const LOCK_THREAD = JSON.stringify(fixture('../../../dist/background/thread-entry.js'));
const slowThread = (ms: number): string =>
  `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${ms});\nawait import(${LOCK_THREAD});\n`;
/** Lives, lets go when it is asked to, and never renews anything. */
const IDLE_THREAD = `import { parentPort } from 'node:worker_threads';
parentPort.on('message', ({ type, sessionId }) => type === 'release' && parentPort.postMessage({ type: 'released', sessionId }));
`;

/** From `ready` to the first run. */
async function waited({ log }: Working): Promise<number> {
  const { at } = await log.moment('active');
  return at - (await log.moment('ready')).at;
}

test('keeps the short lock of a handler that blocks the loop at once, however slowly the thread starts', async () => {
  const scene = await newScene('sqlite');
  const { id } = await scene.queue.add('spin', { ms: paced(2000) });
  const child = new WorkerProcess({
    queue: 'work',
    connection: scene.connection,
    options: { lockDuration: paced(800), lockThreadEntry: entry(scene, slowThread(1500)) },
  });
  await child.moment('started');
  const rival = work(scene, async () => 'rival', { stalledInterval: 50 });
  expect((await child.moment('ended'))['held']).toBe(true);
  await child.moment('completed');
  expect(await scene.queue.getJob(id)).toMatchObject({ attemptsStarted: 1, stalledCounter: 0 });
  expect(rival.log.all('stalled')).toEqual([]);
});

test('waits at most three seconds for a thread that never renews', async () => {
  const scene = await newScene('sqlite');
  await scene.queue.add('job', {});
  const working = work(scene, async () => undefined, { lockDuration: 2000, lockThreadEntry: entry(scene, IDLE_THREAD) });
  expect(await waited(working)).toBeGreaterThan(2900);
  await working.log.moment('completed');
});

test('claims no sooner after pause and resume while the thread starts, and closes at once', async () => {
  const scene = await newScene('sqlite');
  await scene.queue.add('job', {});
  const options = { lockDuration: 2000, lockRenewTime: 100, lockThreadEntry: entry(scene, IDLE_THREAD) };
  const { worker, log } = work(scene, async () => undefined, options);
  const { at } = await log.moment('ready');
  await worker.pause();
  worker.resume();
  const renewals = async () => (await scene.store.sessions('work'))[0]?.renewals ?? 0;
  const before = await renewals();
  await until('the loop to renew twice', async () => (await renewals()) >= before + 2);
  await worker.close();
  expect((await log.moment('closed')).at - at).toBeLessThan(2900);
  expect(log.all('active')).toEqual([]);
});

test('does not wait for the thread with locks that outlast its start', async () => {
  const scene = await newScene('sqlite');
  await scene.queue.add('job', {});
  const working = work(scene, async () => undefined, { lockDuration: 6000, lockThreadEntry: entry(scene, IDLE_THREAD) });
  expect(await waited(working)).toBeLessThan(2500);
});

test.each([
  ['in memory', 'memory', {}],
  ['without a thread', 'sqlite', { useDedicatedLockThread: false }],
  ['without renewal', 'sqlite', { skipLockRenewal: true }],
  ['whose thread cannot start', 'sqlite', { lockThreadEntry: '/nowhere.mjs' }],
] as const)('a worker %s does not wait', async (_, engine, options) => {
  const scene = await newScene(engine);
  await scene.queue.add('job', {});
  expect(await waited(work(scene, async () => undefined, { lockDuration: 2000, ...options }))).toBeLessThan(2500);
});
