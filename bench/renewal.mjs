// What it costs the store to keep all locks of a worker, with few and with many active jobs; and to find that nothing is dead.
import { Queue } from 'holdfast';
import { fill, withStore } from './scene.mjs';
import { percentile } from './statistics.mjs';

export async function renewal(engine, scale) {
  const figures = [];
  for (const active of [1000, 100_000]) {
    const count = Math.ceil(active * scale);
    const { renew, sweep } = await withStore(engine, (store) => costs(store, count));
    const label = count.toLocaleString('en-US');
    figures.push({ what: `renewal with ${label} active jobs`, unit: 'ms', value: renew });
    figures.push({ what: `sweep, nothing dead, ${label} active jobs`, unit: 'ms', value: sweep });
  }
  return figures;
}

async function costs(store, count) {
  const queue = new Queue('bench', { connection: store });
  await fill(queue, count);
  const session = { queue: 'bench', id: `bench-${count}` };
  await store.openSession({
    ...session,
    owner: { host: 'bench', pid: process.pid, name: 'bench', instance: 'bench' },
    durationMs: 600_000,
    maxStalls: 1,
    slots: 0,
  });
  for (let claimed = 0, seq = 1; claimed < count; seq += 1) {
    const { jobs } = await store.claim('bench', { session: session.id, seq, count: Math.min(1000, count - claimed) });
    claimed += jobs.length;
  }
  const renew = await median(() => store.renew([{ ...session, acked: 0 }]));
  const sweep = await median(() => store.sweep('bench', 100));
  await queue.close();
  return { renew, sweep };
}

async function median(work) {
  const times = [];
  for (let n = 0; n < 50; n += 1) {
    const start = performance.now();
    await work();
    times.push(performance.now() - start);
  }
  return percentile(
    times.sort((a, b) => a - b),
    0.5,
  );
}
