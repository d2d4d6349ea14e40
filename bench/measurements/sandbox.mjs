// What a processor in a file costs: time and processor time per job beyond those of the same function in the worker's process, and memory per slot.
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
        const { plain, inFile, slotMiB } = await within(PATIENCE_MS, actor.call('sandbox', args), 'A sandbox');
        return [
          { what: `time a file adds to a job, ${kind}`, unit: 'µs', better: 'less', value: added(plain.us, inFile.us) },
          {
            what: `processor time a file adds to a job, ${kind}`,
            unit: 'µs',
            better: 'less',
            value: added(plain.cpuUs, inFile.cpuUs),
          },
          { what: `memory of a slot, ${kind}`, unit: 'MiB', better: 'less', value: slotMiB },
        ];
      }),
    ),
};

function added(before, after) {
  return Math.max(0, after - before);
}
