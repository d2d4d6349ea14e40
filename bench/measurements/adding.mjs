// Adding one by one (each acknowledged before the next), with 1,000 in flight, and in bulks of 1,000. One by one, producer and store wait
// for one another, so what each of them takes of a processor says how far they can go.
import { withPlace } from '../places.mjs';
import { serverCpuMs } from '../servers.mjs';
import { withActors } from '../stage.mjs';

/** `share`: of the jobs of a backlog. What takes less than some seconds shows the compiler at work rather than the code. */
const WAYS = [
  { how: 'one', what: 'add, one by one', share: 0.4 },
  { how: 'flight', what: 'add, 1,000 in flight', share: 1 },
  { how: 'bulk', what: 'add, bulks of 1,000', share: 1 },
];

/** Such a part of what is counted is added in the same way before the clock starts, as with a backlog. */
const WARM_UP = 0.1;

export const adding = {
  name: 'adding',
  measure: ({ store, contestant, settings }) =>
    withPlace(store, (place) =>
      withActors(async (start) => {
        const { limitMs } = settings;
        const [count] = settings.jobs;
        const actor = await start(contestant, place);
        const lines = [];
        for (const { how, what, share } of WAYS) {
          // The first ones meet code that is not compiled and statements that are not prepared yet.
          await actor.call('add', { how, count: count * share * WARM_UP, limitMs: limitMs * WARM_UP });
          const before = serverCpuMs(store);
          const { jobs, seconds, cpuMs } = await actor.call('add', { how, count: count * share, limitMs });
          lines.push({ what, unit: 'jobs/s', better: 'more', value: jobs / seconds });
          if (how !== 'one') continue;
          const each = (who, ms) => ({
            what: `${who} CPU an add, one by one`,
            unit: 'µs',
            better: 'less',
            value: (ms / jobs) * 1000,
          });
          lines.push(each('producer', cpuMs));
          if (before !== undefined) lines.push(each('store', serverCpuMs(store) - before));
        }
        return lines;
      }),
    ),
};
