// A store of its own for one measurement, and a payload like those of real jobs (about 100 bytes).
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore } from 'holdfast';

export const PAYLOAD = { user: 4711, mail: 'someone@example.com', template: 'welcome', at: '2026-01-01T00:00:00.000Z' };

export async function withStore(engine, work) {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-bench-'));
  const url = engine === 'sqlite' ? `sqlite:${join(folder, 'jobs.db')}` : `${engine}:`;
  const store = await openStore(url);
  try {
    return await work(store, url);
  } finally {
    await store.close();
    await rm(folder, { recursive: true, force: true });
  }
}

export async function fill(queue, count, chunk = 1000) {
  for (let added = 0; added < count; added += chunk) {
    await queue.addBulk(Array.from({ length: Math.min(chunk, count - added) }, () => ({ name: 'work', data: PAYLOAD })));
  }
}

/** Seconds that it took. */
export async function timed(work) {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}
