// What a claim costs while 10^4, 10^5 and 10^6 jobs wait, each backlog in a store of its own. They are asked in turns, so that a slow
// moment of the machine hits them alike.
import { Queue } from 'holdfast';
import { fill, withStore } from './scene.mjs';
import { percentile } from './statistics.mjs';

const SIZES = [10_000, 100_000, 1_000_000];
const CLAIMS_PER_ROUND = 50;
const DURATION_MS = 600_000;

export async function claims(engine, scale, rounds) {
  const sizes = SIZES.map((size) => Math.ceil(size * scale));
  return withBacklogs(engine, sizes, async (backlogs) => {
    // The first ones meet cold caches and plans that are not made yet.
    for (const backlog of backlogs) await costs(backlog);
    const rows = [];
    for (let round = 0; round < rounds; round += 1) {
      const inTurns = backlogs.map(() => []);
      for (let n = 0; n < CLAIMS_PER_ROUND; n += 1) {
        for (const [index, backlog] of backlogs.entries()) inTurns[index].push(await cost(backlog));
      }
      rows.push(inTurns.map(median));
    }
    const label = (index) => sizes[index].toLocaleString('en-US');
    return [
      ...sizes.map((_, index) => ({ what: `claim, ${label(index)} waiting`, unit: 'ms', values: rows.map((row) => row[index]) })),
      ...[1, 2].map((index) => ({
        what: `${label(index)} against ${label(0)} waiting (target 1.3)`,
        unit: '×',
        values: rows.map((row) => row[index] / row[0]),
      })),
    ];
  });
}

/** All of them open at the same time. */
async function withBacklogs(engine, [size, ...others], work, backlogs = []) {
  if (size === undefined) return work(backlogs);
  return withStore(engine, async (store) => {
    const queue = new Queue('claims', { connection: store });
    await fill(queue, size, 5000);
    await queue.close();
    const owner = { host: 'bench', pid: process.pid, name: 'bench' };
    await store.openSession({ queue: 'claims', id: 'bench', owner, durationMs: DURATION_MS, maxStalls: 1 });
    return withBacklogs(engine, others, work, [...backlogs, { store, seq: 0 }]);
  });
}

async function costs(backlog) {
  for (let n = 0; n < CLAIMS_PER_ROUND; n += 1) await cost(backlog);
}

/** Milliseconds of one claim. Its job is finished, so that nothing piles up. */
async function cost(backlog) {
  const { store } = backlog;
  backlog.seq += 1;
  const start = performance.now();
  const { jobs } = await store.claim('claims', { session: 'bench', seq: backlog.seq, count: 1 });
  const ms = performance.now() - start;
  if (jobs.length !== 1) throw new Error(`A claim brought ${jobs.length} jobs.`);
  backlog.seq += 1;
  const [{ id: jobId, token }] = jobs;
  const outcome = { kind: 'completed', jobId, token, value: 'null', keep: { count: 0 } };
  await store.settle('claims', [outcome], { caller: 'bench', seq: backlog.seq });
  return ms;
}

function median(values) {
  return percentile(
    values.sort((a, b) => a - b),
    0.5,
  );
}
