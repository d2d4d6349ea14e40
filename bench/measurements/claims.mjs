// What a claim costs while 10^4, 10^5 and 10^6 jobs wait, each backlog in a place of its own. They are asked in turns, so that a slow moment
// of the machine hits them alike; and, because they take long to make, all rounds use the same ones.
import { withStore } from '../places.mjs';
import { fillQueue, openSession } from '../sessions.mjs';
import { median } from '../statistics.mjs';

const SIZES = [10_000, 100_000, 1_000_000];
const CLAIMS_PER_ROUND = 50;

export const claims = {
  name: 'claims',
  oursOnly: true,
  ownRounds: true,
  measure: async ({ store, settings, rounds }) => {
    const sizes = SIZES.map((size) => Math.ceil(size * settings.scale));
    return withBacklogs(store, sizes, async (backlogs) => {
      // The first ones meet cold caches and plans that are not made yet.
      for (const backlog of backlogs) for (let n = 0; n < CLAIMS_PER_ROUND; n += 1) await cost(backlog);
      const rows = [];
      for (let round = 0; round < rounds; round += 1) {
        const inTurns = backlogs.map(() => []);
        for (let n = 0; n < CLAIMS_PER_ROUND; n += 1)
          for (const [index, backlog] of backlogs.entries()) inTurns[index].push(await cost(backlog));
        rows.push(inTurns.map(median));
      }
      const label = (index) => sizes[index].toLocaleString('en-US');
      const line = (what, unit, values) => ({ what, unit, better: 'less', values });
      return [
        ...sizes.map((_, index) =>
          line(
            `claim, ${label(index)} waiting`,
            'ms',
            rows.map((row) => row[index]),
          ),
        ),
        ...[1, 2].map((index) =>
          line(
            `claim, ${label(index)} against ${label(0)} waiting`,
            '×',
            rows.map((row) => row[index] / row[0]),
          ),
        ),
      ];
    });
  },
};

/** All of them open at the same time. */
async function withBacklogs(engine, [size, ...others], work, backlogs = []) {
  if (size === undefined) return work(backlogs);
  return withStore(engine, async (store, queue) => {
    await fillQueue(store, queue, size);
    const { id: session } = await openSession(store, queue, 'bench');
    return withBacklogs(engine, others, work, [...backlogs, { store, queue, session, seq: 0 }]);
  });
}

/** Milliseconds of one claim. Its job is finished, so that nothing piles up. */
async function cost(backlog) {
  const { store, queue, session } = backlog;
  backlog.seq += 1;
  const start = performance.now();
  const { jobs } = await store.claim(queue, { session, seq: backlog.seq, count: 1 });
  const ms = performance.now() - start;
  if (jobs.length !== 1) throw new Error(`A claim brought ${jobs.length} jobs.`);
  backlog.seq += 1;
  const [{ id: jobId, token }] = jobs;
  const outcome = { kind: 'completed', jobId, token, value: 'null', keep: { count: 0 } };
  await store.settle(queue, [outcome], { caller: session, seq: backlog.seq });
  return ms;
}
