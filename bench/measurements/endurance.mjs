// What a worker process has kept after a tenth of its jobs and after all of them (a million): a leak would show. Only with --long.
import { withPlace } from '../places.mjs';
import { withActors } from '../stage.mjs';

const CONCURRENCY = 100;
const CHUNK = 10_000;

export const endurance = {
  name: 'endurance',
  measure: ({ store, contestant, settings }) =>
    withPlace(store, (place) =>
      withActors(async (start) => {
        const worker = await start(contestant, place);
        // Memory is reached by its own process alone.
        const producer = store === 'memory' ? worker : await start(contestant, place);
        const total = settings.endurance;
        let done = 0;
        let wake = () => undefined;
        worker.on('progress', (report) => {
          done = report.done;
          wake();
        });
        await worker.call('work', { concurrency: CONCURRENCY, count: total });
        const until = async (count) => {
          for (let added = done; added < count; added += CHUNK) {
            await producer.call('fill', { count: Math.min(CHUNK, count - added) });
            // The producer waits for the worker, so that what is kept is not a backlog.
            while (done < Math.min(count, added + CHUNK)) await new Promise((resolve) => (wake = resolve));
          }
          return worker.call('memory');
        };
        const early = await until(total / 10);
        const late = await until(total);
        return [
          { what: `heap after ${(total / 10).toLocaleString('en-US')} jobs`, unit: 'MiB', better: 'less', value: early.heapMiB },
          { what: `heap after ${total.toLocaleString('en-US')} jobs`, unit: 'MiB', better: 'less', value: late.heapMiB },
        ];
      }),
    ),
};
