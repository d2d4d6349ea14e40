// Ten thousand schedules that are due within one minute, one every 6 ms: how fast they are made, how late their jobs start, and what a slot
// costs. A slot is two calls: the claim, and the one that makes the next job before the handler begins.
import { Queue, Worker } from 'holdfast';
import { withPlace } from '../places.mjs';
import { ownCpuMs } from '../processor-time.mjs';
import { serverCpuMs } from '../servers.mjs';
import { percentile } from '../statistics.mjs';

const SCHEDULES = 10_000;
const MINUTE_MS = 60_000;
const IN_FLIGHT = 50;
const CONCURRENCY = 100;
/** From the first upsert to the first slot, for each schedule and at least. */
const LEAD_MS = 4;
const MIN_LEAD_MS = 4000;

export const schedules = {
  name: 'schedules',
  oursOnly: true,
  measure: ({ store: engine, settings }) =>
    withPlace(engine, async ({ url: connection, queue: name }) => {
      const count = Math.max(100, Math.ceil(SCHEDULES * settings.scale));
      const queue = new Queue(name, { connection });
      await queue.waitUntilReady();
      try {
        const first = Date.now() + Math.max(MIN_LEAD_MS, count * LEAD_MS);
        const madeMs = await make(queue, count, first);
        if (Date.now() > first)
          throw new Error(`${count} schedules took ${Math.round(madeMs)} ms to make: too long for this measurement.`);
        return [
          { what: 'schedules made', unit: 'schedules/s', better: 'more', value: (count * 1000) / madeMs },
          ...(await run({ engine, connection, name, count })),
        ];
      } finally {
        await queue.close();
      }
    }),
};

/** One slot every 6 ms, and again a minute later. Returns how long it took. */
async function make(queue, count, first) {
  const began = performance.now();
  let next = 0;
  const lane = async () => {
    for (let n = next++; n < count; n = next++)
      await queue.upsertJobScheduler(`schedule-${n}`, { every: MINUTE_MS, startDate: first + slotOf(n) });
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
  return performance.now() - began;
}

const slotOf = (n) => Math.round((n * MINUTE_MS) / SCHEDULES);

async function run({ engine, connection, name, count }) {
  const late = [];
  let done;
  const all = new Promise((resolve) => (done = resolve));
  const handle = ({ opts }) => {
    late.push(Date.now() - opts.prevMillis);
    if (late.length === count) done();
  };
  const worker = new Worker(name, handle, { connection, concurrency: CONCURRENCY });
  await worker.waitUntilReady();
  const before = { server: serverCpuMs(engine), worker: ownCpuMs() };
  await all;
  const spent = { server: serverCpuMs(engine) - before.server, worker: ownCpuMs() - before.worker };
  await worker.close();
  late.sort((a, b) => a - b);
  const label = count.toLocaleString('en-US');
  const seconds = Math.round(slotOf(count) / 1000);
  const within = seconds === 60 ? 'a minute' : `${Math.max(1, seconds)} s`;
  const line = (what, unit, value) => ({ what: `${label} schedules within ${within}, ${what}`, unit, better: 'less', value });
  return [
    line('late, p50', 'ms', percentile(late, 0.5)),
    line('late, p99', 'ms', percentile(late, 0.99)),
    line('worker CPU a slot', 'µs', (spent.worker * 1000) / count),
    ...(Number.isNaN(spent.server) ? [] : [line('store CPU a slot', 'µs', (spent.server * 1000) / count)]),
  ];
}
