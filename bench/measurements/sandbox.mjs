// What a processor in a file costs: time per job beyond that of the same function in the worker's process, and memory per slot.
import { fileURLToPath } from 'node:url';
import { withPlace } from '../places.mjs';
import { withActors, within } from '../stage.mjs';

const FILE = fileURLToPath(new URL('../sandbox-handler.cjs', import.meta.url));
const PATIENCE_MS = 300_000;
const JOBS = 10_000;
const SLOTS = 10;

export const sandbox = {
  name: 'sandbox',
  cases: () => ['threads', 'processes'],
  // Only these run processors in files, and the store plays no part in it.
  fits: ({ contestant, store }) => ['holdfast', 'bullmq'].includes(contestant.id) && (store === 'redis' || store === 'memory'),
  measure: ({ store, contestant, settings, case: kind }) =>
    withPlace(store, (place) =>
      withActors(async (start) => {
        const actor = await start(contestant, place);
        const jobs = Math.max(100, JOBS * settings.scale);
        const args = { file: FILE, threads: kind === 'threads', jobs, slots: SLOTS };
        const { plainUs, fileUs, slotMiB } = await within(PATIENCE_MS, actor.call('sandbox', args), 'A sandbox');
        return [
          { what: `time a job in a file adds, ${kind}`, unit: 'µs', better: 'less', value: Math.max(0, fileUs - plainUs) },
          { what: `memory of a slot, ${kind}`, unit: 'MiB', better: 'less', value: slotMiB },
        ];
      }),
    ),
};
