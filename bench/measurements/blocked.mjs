// Ten worker processes, each blocked inside a handler for longer than its lock, and one that is idle: how many of the ten jobs run twice.
// Locks are set as short as the contestant allows. (Who has locks of hours runs nothing twice, and recovers from a crash as late.)
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { withPlace } from '../places.mjs';
import { withActors, within } from '../stage.mjs';

const JOBS = 10;
const LOCK_MS = 2000;
const BLOCK_MS = 7000;
const AFTERWARDS_MS = 500;
const PATIENCE_MS = 30_000;

export const blocked = {
  name: 'blocked',
  measure: ({ store, contestant, settings }) =>
    withPlace(store, (place) =>
      withActors(async (start) => {
        const jobs = settings.tiny ? 2 : JOBS;
        const victims = [];
        const runs = new Map();
        const count = ({ n }) => runs.set(n, (runs.get(n) ?? 0) + 1);
        for (let n = 0; n < jobs; n += 1) {
          const victim = await start(contestant, place);
          victims.push(victim);
          victim.on('started', count);
        }
        const idle = await start(contestant, place);
        idle.on('started', count);
        const taken = Promise.all(victims.map((victim) => once(victim, 'started')));
        for (const victim of victims) await victim.call('block', { blockMs: BLOCK_MS, lockMs: LOCK_MS });
        // Not by a victim: it would be blocked before the last one is added.
        for (let n = 0; n < jobs; n += 1) await idle.call('addOne', { n });
        await within(PATIENCE_MS, taken, 'Taking the jobs');
        await idle.call('tellStarts', { concurrency: jobs, lockMs: LOCK_MS });
        await sleep(BLOCK_MS + AFTERWARDS_MS);
        const twice = [...runs.values()].filter((times) => times > 1).length;
        return [{ what: `ran twice of ${jobs}, blocked loop`, unit: 'jobs', better: 'less', value: twice }];
      }),
    ),
};
