// What a worker costs that has nothing to do. Each time that a timer wakes an idle process costs about 0.01 % of a core, which is more than the
// work that is done then. So timers are counted, not time: that does not depend on the machine.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { newScene } from '../support/scenes/scene.js';

const fixture = (name: string): string => fileURLToPath(new URL(`fixtures/${name}`, import.meta.url));

/** The poll of the store rests after a second without a change. */
const REST_MS = 3000;
const MS = 5000;

test('an idle worker on SQLite and its lock thread are woken at most ten times a second', async () => {
  const { url } = await newScene('sqlite');
  const plan = JSON.stringify({ connection: url, restMs: REST_MS, ms: MS });
  // NODE_OPTIONS reaches the lock thread too, which takes no other options of the process.
  const env = { ...process.env, NODE_OPTIONS: `--require ${fixture('count-timers.cjs')}` };
  const child = fork(fixture('idle-worker.mjs'), [plan], { env, execArgv: [] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const fires = await new Promise<{ main: number; thread: number }>((resolve, reject) => {
    child.once('message', (message) => resolve(message as { main: number; thread: number }));
    child.once('exit', (code) => reject(new Error(`The worker ended with code ${code}.`)));
  });
  // Both were counted: each looks at something at least once in two seconds.
  expect(Math.min(fires.main, fires.thread)).toBeGreaterThanOrEqual(MS / 2000);
  expect(fires.main + fires.thread).toBeLessThanOrEqual((10 * MS) / 1000);
});
