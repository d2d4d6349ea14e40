// What it costs the store to keep all locks of a worker, with few and with many active jobs, to find that nothing is dead, and to hand back
// a hundredth of them.
import { setTimeout as sleep } from 'node:timers/promises';
import { SWEPT_AT_ONCE } from '../../dist/maintenance/sweeper.js';
import { withStore } from '../places.mjs';
import { claimAll, fillQueue, openSession, timesOf } from '../sessions.mjs';
import { median } from '../statistics.mjs';

const SIZES = [1000, 10_000, 100_000];
const CALLS = 50;
const SHORT_MS = 3000;

export const renewal = {
  name: 'renewal',
  oursOnly: true,
  cases: ({ settings }) => [...new Set(SIZES.map((active) => Math.max(100, Math.ceil(active * settings.scale))))],
  measure: ({ store: engine, case: active }) =>
    withStore(engine, async (store, queue) => {
      const label = active.toLocaleString('en-US');
      await fillQueue(store, queue, active);
      const dying = Math.ceil(active / 100);
      const living = await openSession(store, queue, 'living');
      await claimAll(store, living, active - dying);
      const renew = median(await timesOf(CALLS, () => store.renew([{ ...living, acked: 0 }])));
      const sweep = median(await timesOf(CALLS, () => store.sweep(queue, SWEPT_AT_ONCE)));
      await claimAll(store, await openSession(store, queue, 'dying', SHORT_MS), dying);
      await sleep(SHORT_MS + 50);
      const dead = await sweepAll(store, queue, dying);
      const line = (what, value) => ({ what, unit: 'ms', better: 'less', value });
      return [
        line(`renewal, ${label} active jobs`, renew),
        line(`sweep, nothing dead, ${label} active jobs`, sweep),
        line(`longest sweep call, 1 % dead of ${label}`, Math.max(...dead)),
      ];
    }),
};

async function sweepAll(store, queue, expected) {
  let found = 0;
  const times = [];
  for (let more = true; more; ) {
    const [ms] = await timesOf(1, async () => {
      const { stalled, failed, more: rest } = await store.sweep(queue, SWEPT_AT_ONCE);
      found += stalled.length + failed.length;
      more = rest;
    });
    times.push(ms);
  }
  if (found !== expected) throw new Error(`${found} of ${expected} dead jobs were found.`);
  return times;
}
