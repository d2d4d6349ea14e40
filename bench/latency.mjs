// From `add` to the start of the handler on an idle queue, within one process and, where the store is shared, from one process to another.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Queue, Worker } from 'holdfast';
import { withStore } from './scene.mjs';
import { percentile } from './statistics.mjs';

const WORKER = fileURLToPath(new URL('./latency-worker.mjs', import.meta.url));

export async function latency(engine, scale) {
  const count = Math.ceil(500 * scale);
  return withStore(engine, async (store, url) => {
    const figures = figuresOf('in one process', await inProcess(store, count));
    if (engine !== 'memory') figures.push(...figuresOf('between processes', await betweenProcesses(store, url, count)));
    return figures;
  });
}

function figuresOf(where, waits) {
  const sorted = waits.sort((a, b) => a - b);
  return [
    { what: `add to start, idle, ${where}, p50`, unit: 'ms', value: percentile(sorted, 0.5) },
    { what: `add to start, idle, ${where}, p99`, unit: 'ms', value: percentile(sorted, 0.99) },
  ];
}

async function inProcess(store, count) {
  let started;
  const worker = new Worker('near', async () => started(), { connection: store });
  const queue = new Queue('near', { connection: store });
  await new Promise((resolve) => worker.once('ready', resolve));
  const waits = [];
  for (let n = 0; n < count; n += 1) {
    const begun = new Promise((resolve) => {
      started = () => resolve(performance.now());
    });
    const completed = new Promise((resolve) => worker.once('completed', resolve));
    const from = performance.now();
    await queue.add('work');
    waits.push((await begun) - from);
    await completed;
    await pause();
  }
  await worker.close();
  await queue.close();
  return waits;
}

async function betweenProcesses(store, url, count) {
  const child = fork(WORKER, [url], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const next = () => new Promise((resolve) => child.once('message', resolve));
  await next();
  const queue = new Queue('far', { connection: store });
  const waits = [];
  for (let n = 0; n < count; n += 1) {
    const begun = next();
    // The monotonic clock is one for all processes of a host.
    const from = process.hrtime.bigint();
    await queue.add('work');
    waits.push(Number(BigInt(await begun) - from) / 1e6);
    await pause();
  }
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.send('close');
  await gone;
  await queue.close();
  return waits;
}

/** Long enough for the queue to be idle again, and not in step with anybody's polling. */
function pause() {
  return new Promise((resolve) => setTimeout(resolve, 2 + Math.random() * 10));
}
