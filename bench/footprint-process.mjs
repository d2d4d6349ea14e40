// Prints what a process with so many workers takes: memory, threads beyond those of an empty one, and connections to the store.
import { readdirSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'holdfast';

const [url, count] = process.argv.slice(2);
const threadsBefore = taskCount();
const socketsBefore = openSockets();
const workers = Array.from(
  { length: Number(count) },
  (_, n) => new Worker(`queue-${n}`, async () => undefined, { connection: url, lockRenewTime: 100, lockDuration: 2000 }),
);
await Promise.all(workers.map((worker) => new Promise((resolve) => worker.once('ready', resolve))));
// The thread counts once it renews; then what is opened on first use gets its time.
while (workers.some((worker) => worker.health().lockThread === 'starting')) await sleep(20);
await sleep(500);
globalThis.gc();
console.log(
  JSON.stringify({
    rssMiB: process.memoryUsage().rss / 2 ** 20,
    threads: taskCount() - threadsBefore,
    connections: connections(),
  }),
);
await Promise.all(workers.map((worker) => worker.close()));

/** Linux only; elsewhere nothing is claimed. */
function taskCount() {
  try {
    return readdirSync('/proc/self/task').length;
  } catch {
    return Number.NaN;
  }
}

function connections() {
  if (url.startsWith('memory:')) return null;
  if (!url.startsWith('sqlite:')) return openSockets() - socketsBefore;
  const path = url.slice('sqlite:'.length);
  return openFiles((link) => link === path);
}

function openSockets() {
  return openFiles((link) => link.startsWith('socket:'));
}

function openFiles(isCounted) {
  try {
    return readdirSync('/proc/self/fd').filter((fd) => isCounted(linkOf(fd))).length;
  } catch {
    return Number.NaN;
  }
}

function linkOf(fd) {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return '';
  }
}
