// Memory, threads and connections of a process with 1 and with 20 workers, each on a queue of its own.
import { withPlace } from '../places.mjs';
import { withActors } from '../stage.mjs';

export const footprint = {
  name: 'footprint',
  cases: () => [1, 20],
  fits: ({ contestant, case: workers }) => workers === 1 || contestant.onePerProcess !== true,
  measure: ({ store, contestant, case: workers }) =>
    withPlace(store, (place) =>
      withActors(async (start) => {
        const actor = await start(contestant);
        const { rssMiB, threads, connections } = await actor.call('crew', {
          count: workers,
          place: { ...place, options: contestant.options },
        });
        const label = workers === 1 ? '1 worker' : `${workers} workers`;
        const lines = [
          { what: `memory of a process with ${label}`, unit: 'MiB', better: 'less', value: rssMiB },
          { what: `threads of ${label}`, unit: 'threads', better: 'less', value: threads },
        ];
        if (store !== 'memory') lines.push({ what: `connections of ${label}`, unit: 'open', better: 'less', value: connections });
        return lines;
      }),
    ),
};
