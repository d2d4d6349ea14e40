// From `add` to the start of the handler on an idle queue, within one process and from one process to another.
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { withPlace } from '../places.mjs';
import { withActors, within } from '../stage.mjs';
import { percentile } from '../statistics.mjs';

const PATIENCE_MS = 60_000;

export const latency = {
  name: 'latency',
  cases: ({ store }) => (store === 'memory' ? [inOneProcess] : [inOneProcess, betweenProcesses]),
  // The raw limit is two calls, one after the other; telling another process would be a queue's work.
  fits: ({ contestant, case: way }) => contestant.kind !== 'raw' || way === inOneProcess,
  measure: ({ store, contestant, settings, case: way }) =>
    withPlace(store, (place) => withActors((start) => way(start, contestant, place, settings))),
};

async function inOneProcess(start, contestant, place, settings) {
  const actor = await start(contestant, place);
  const { latencies: count, limitMs } = settings;
  return figures('one process', await within(PATIENCE_MS, actor.call('latency', { count, limitMs }), 'Starting a job'));
}

async function betweenProcesses(start, contestant, place, { latencies, limitMs }) {
  const producer = await start(contestant, place);
  const worker = await start(contestant, place);
  await worker.call('tellStarts', { concurrency: 1 });
  const waits = [];
  const until = performance.now() + limitMs;
  while (waits.length < latencies && (performance.now() < until || waits.length === 0)) {
    const started = once(worker, 'started');
    const done = once(worker, 'done');
    const from = await producer.call('addOne');
    const [{ at }] = await within(PATIENCE_MS, started, 'Starting a job');
    waits.push(at - from);
    await done;
    // Idle again, and not in step with anybody's polling.
    await sleep(2 + Math.random() * 10);
  }
  return figures('two processes', waits);
}

function figures(where, waits) {
  const sorted = waits.sort((a, b) => a - b);
  return [
    { what: `add to start, idle, ${where}, p50`, unit: 'ms', better: 'less', value: percentile(sorted, 0.5) },
    { what: `add to start, idle, ${where}, p99`, unit: 'ms', better: 'less', value: percentile(sorted, 0.99) },
  ];
}
