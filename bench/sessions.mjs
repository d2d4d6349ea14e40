// Sessions and active jobs straight on a store, for what no worker process could show: a hundred thousand active jobs, ten thousand workers.
import { payloads } from './payload.mjs';
import { Queue } from 'holdfast';

const DURATION_MS = 600_000;
const CHUNK = 1000;

export async function fillQueue(store, name, count) {
  const queue = new Queue(name, { connection: store });
  for (let added = 0; added < count; added += CHUNK)
    await queue.addBulk(payloads(Math.min(CHUNK, count - added)).map((data) => ({ name: 'work', data })));
  await queue.close();
}

export async function openSession(store, queue, id, durationMs = DURATION_MS) {
  const session = { queue, id };
  const owner = { host: 'bench', pid: process.pid, name: 'bench', instance: 'bench' };
  await store.openSession({ ...session, owner, durationMs, maxStalls: 1, slots: 1 });
  return session;
}

export async function claimAll(store, { queue, id }, count) {
  for (let claimed = 0, seq = 1; claimed < count; seq += 1) {
    const { jobs } = await store.claim(queue, { session: id, seq, count: Math.min(CHUNK, count - claimed) });
    if (jobs.length === 0) throw new Error(`Only ${claimed} of ${count} jobs could be claimed.`);
    claimed += jobs.length;
  }
}

/** Milliseconds of each of so many calls, one after the other. */
export async function timesOf(calls, work) {
  const times = [];
  for (let n = 0; n < calls; n += 1) {
    const start = performance.now();
    await work();
    times.push(performance.now() - start);
  }
  return times;
}
