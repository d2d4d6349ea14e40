// From the SIGKILL of a worker process to the moment when its job starts in another one, both with default options.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Queue } from 'holdfast';
import { withStore } from './scene.mjs';

const WORKER = fileURLToPath(new URL('./recovery-worker.mjs', import.meta.url));

export async function recovery(engine) {
  const value = await withStore(engine, (store, url) => killed(store, url));
  return [{ what: 'SIGKILL to start elsewhere (target 5 s)', unit: 's', value }];
}

async function killed(store, url) {
  const queue = new Queue('recovery', { connection: store });
  const victim = start(url);
  let survivor;
  try {
    await victim.hears('ready');
    await queue.add('work');
    await victim.hears('started');
    survivor = start(url);
    await survivor.hears('ready');
    // Not in step with anybody's schedule.
    await new Promise((resolve) => setTimeout(resolve, 500 + Math.random() * 1500));
    const killedAt = process.hrtime.bigint();
    victim.kill();
    const { at } = await survivor.hears('started');
    // The monotonic clock is one for all processes of a host.
    return Number(BigInt(at) - killedAt) / 1e9;
  } finally {
    victim.kill();
    survivor?.kill();
    await queue.close();
  }
}

function start(url) {
  const child = fork(WORKER, [url], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const heard = new Map();
  const waiting = new Map();
  child.on('message', (message) => {
    heard.set(message.event, message);
    waiting.get(message.event)?.(message);
  });
  return {
    hears: (event) => heard.get(event) ?? new Promise((resolve) => waiting.set(event, resolve)),
    kill: () => child.kill('SIGKILL'),
  };
}
