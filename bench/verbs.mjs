// What the driver may ask of a contestant's process.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { payload, payloads } from './payload.mjs';
import { now } from './clock.mjs';
import { ownCpuMs } from './processor-time.mjs';

const BULK = 1000;
const REPORT_MS = 10;

export function verbs(open, tell) {
  let contestant;

  return {
    async open(place) {
      contestant = await open(place);
    },

    async fill({ count }) {
      for (let added = 0; added < count; added += BULK) await contestant.addBulk(payloads(Math.min(BULK, count - added), added));
    },

    /** Ends early when the time is over. */
    async add({ how, count, limitMs }) {
      const steps = {
        one: [1, () => contestant.add(payload(0))],
        flight: [BULK, () => Promise.all(payloads(BULK).map((data) => contestant.add(data)))],
        bulk: [BULK, () => contestant.addBulk(payloads(BULK))],
      };
      const [size, step] = steps[how];
      const cpuBefore = process.cpuUsage();
      const start = now();
      let added = 0;
      for (; added < count && now() - start < limitMs; added += size) await step();
      return { jobs: added, seconds: (now() - start) / 1000, cpuMs: ownCpuMs(cpuBefore) };
    },

    /** Adds one job and answers when that began. */
    async addOne({ n = 0 } = {}) {
      const at = now();
      await contestant.add(payload(n));
      return at;
    },

    /** A handler that does nothing, or waits so long; tells how many are done, and since when, every few milliseconds. */
    async work({ concurrency, count, handlerMs = 0 }) {
      const progress = { done: 0, first: 0, last: 0 };
      let cpuBefore;
      let told = 0;
      const report = () => {
        if (progress.done === told) return;
        told = progress.done;
        tell({ event: 'progress', ...progress, cpuMs: ownCpuMs(cpuBefore) });
      };
      setInterval(report, REPORT_MS);
      await contestant.work(
        { concurrency },
        async () => {
          if (cpuBefore === undefined) {
            cpuBefore = process.cpuUsage();
            progress.first = now();
          }
          if (handlerMs > 0) await sleep(handlerMs);
        },
        () => {
          progress.done += 1;
          progress.last = now();
          if (progress.done === count) report();
        },
      );
    },

    /** Tells of each start; the handler ends at once. */
    async tellStarts({ concurrency, lockMs }) {
      await contestant.work(
        { concurrency, lockMs },
        async ({ n }) => tell({ event: 'started', n, at: now() }),
        () => tell({ event: 'done', at: now() }),
      );
    },

    /** A handler that never ends, to be killed in. */
    async holdForever() {
      await contestant.work(
        { concurrency: 1 },
        ({ n }) => {
          tell({ event: 'started', n, at: now() });
          return new Promise(() => undefined);
        },
        () => undefined,
      );
    },

    /** A handler that keeps the event loop for itself. Jobs are added when the worker is up altogether. */
    async block({ blockMs, lockMs }) {
      const worker = await contestant.work(
        { concurrency: 1, lockMs },
        async ({ n }) => {
          tell({ event: 'started', n, at: now() });
          // The message must be out before nothing moves any more.
          await sleep(20);
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, blockMs);
        },
        () => undefined,
      );
      await threadsAreUp([worker]);
    },

    /** Milliseconds from `add` to the start of the handler, in this process, on a queue that is idle. */
    async latency({ count, limitMs }) {
      const waits = [];
      let begun;
      let finished;
      await contestant.work(
        { concurrency: 1 },
        async () => begun(now()),
        () => finished(),
      );
      const until = now() + limitMs;
      while (waits.length < count && (now() < until || waits.length === 0)) {
        const started = new Promise((resolve) => (begun = resolve));
        const done = new Promise((resolve) => (finished = resolve));
        const from = now();
        await contestant.add(payload(0));
        waits.push((await started) - from);
        await done;
        // Idle again, and not in step with anybody's polling.
        await sleep(2 + Math.random() * 10);
      }
      return waits;
    },

    /** What so many workers take, each on a queue of its own, beyond what an empty process has. */
    async crew({ count, place }) {
      const threads = listed('/proc/self/task').length;
      const sockets = connections('');
      const workers = [];
      for (let n = 0; n < count; n += 1) {
        const each = await open({ ...place, queue: `${place.queue}-${n}` });
        workers.push(
          await each.work(
            { concurrency: 1 },
            async () => undefined,
            () => undefined,
          ),
        );
      }
      await threadsAreUp(workers);
      // What is opened on first use gets its time.
      await sleep(500);
      const file = place.url.startsWith('sqlite:');
      return {
        ...(await memory()),
        threads: listed('/proc/self/task').length - threads,
        connections: connections(place.url) - (file ? 0 : sockets),
      };
    },

    /** What a job takes with a function and with a file, and the memory of a busy slot with a file. */
    async sandbox({ file, threads, jobs, slots }) {
      const plain = await drain(contestant, { concurrency: 1 }, jobs);
      const inFile = await drain(contestant, { concurrency: 1, file, threads }, jobs);
      return { plain, inFile, slotMiB: await slotMemory(contestant, { concurrency: slots, file, threads }) };
    },

    memory,
  };
}

/** One job after the other, in microseconds of time and of the processor; the first tenth, in which code gets warm and children start, is not counted. */
async function drain(contestant, settings, count) {
  const warm = Math.ceil(count / 10);
  await contestant.addBulk(payloads(count + warm));
  let done = 0;
  let first;
  let last;
  let finish;
  const finished = new Promise((resolve) => (finish = resolve));
  const { stop } = await contestant.work(
    settings,
    async () => undefined,
    () => {
      done += 1;
      if (done === warm) first = { at: now(), cpu: cpuUs() };
      if (done === count + warm) finish((last = { at: now(), cpu: cpuUs() }));
    },
  );
  await finished;
  await stop();
  return { us: ((last.at - first.at) / count) * 1000, cpuUs: (last.cpu - first.cpu) / count };
}

/** Of this process and its children. The kernel counts those of others in hundredths of a second. */
function cpuUs() {
  const { user, system } = process.cpuUsage();
  const ticks = children().map((pid) => textOf(`/proc/${pid}/stat`).split(') ').at(-1).split(' ').slice(11, 13));
  return user + system + ticks.flat().reduce((sum, each) => sum + Number(each), 0) * 10_000;
}

const HOLD_MS = 3000;

/** The memory of this process and its children while all slots are busy, beyond that of this process before, per slot. */
async function slotMemory(contestant, settings) {
  const before = ownPages();
  let done = 0;
  const { stop } = await contestant.work(
    settings,
    async () => undefined,
    () => (done += 1),
  );
  await contestant.addBulk(Array.from({ length: settings.concurrency }, () => ({ holdMs: HOLD_MS })));
  let most = 0;
  while (done === 0) {
    await sleep(100);
    most = Math.max(most, ownPages());
  }
  await stop();
  return (most - before) / settings.concurrency;
}

/** In MiB: pages that processes share count for each of them in part. Linux only. */
function ownPages() {
  const kib = ['self', ...children()].map((pid) => Number(/^Pss:\s+(\d+)/m.exec(textOf(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0));
  return kib.reduce((sum, each) => sum + each, 0) / 1024;
}

function children() {
  return listed('/proc/self/task').flatMap((task) => textOf(`/proc/self/task/${task}/children`).split(' ').filter(Boolean));
}

function textOf(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

async function threadsAreUp(workers) {
  while (workers.some((worker) => worker.lockThread?.() === 'starting')) await sleep(20);
}

async function memory() {
  for (let n = 0; n < 3; n += 1) {
    globalThis.gc();
    await sleep(50);
  }
  const { rss, heapUsed } = process.memoryUsage();
  return { rssMiB: rss / 2 ** 20, heapMiB: heapUsed / 2 ** 20 };
}

/** Linux only; elsewhere nothing is claimed. */
function listed(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Open files of a SQLite database, else open sockets. */
function connections(url) {
  const file = url.startsWith('sqlite:') ? url.slice('sqlite:'.length) : undefined;
  const isOne = (link) => (file === undefined ? link.startsWith('socket:') : link === file);
  return listed('/proc/self/fd').filter((fd) => isOne(linkOf(fd))).length;
}

function linkOf(fd) {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return '';
  }
}
