// A store of its own for one measurement, and a payload like those of real jobs (about 100 bytes).
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore } from 'holdfast';
import { serverUrl } from './servers.mjs';

export const PAYLOAD = { user: 4711, mail: 'someone@example.com', template: 'welcome', at: '2026-01-01T00:00:00.000Z' };

const PLACES = {
  memory: async () => ({ url: 'memory:', clear: async () => undefined }),
  sqlite: inFile,
  redis: underPrefix,
  postgres: inSchema,
};
export const STORES = Object.keys(PLACES);

/** Gives `work` an open store and its URL; nothing of it is left afterwards. */
export async function withStore(engine, work) {
  const { url, clear } = await PLACES[engine]();
  try {
    const store = await openStore(url);
    try {
      return await work(store, url);
    } finally {
      await store.close();
    }
  } finally {
    await clear();
  }
}

async function inFile() {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-bench-'));
  return { url: `sqlite:${join(folder, 'jobs.db')}`, clear: () => rm(folder, { recursive: true, force: true }) };
}

async function underPrefix() {
  const server = await serverUrl('redis');
  const prefix = `bench-${randomUUID()}`;
  const url = new URL(server);
  url.searchParams.set('prefix', prefix);
  const clear = async () => {
    const { Redis } = await import('ioredis');
    const client = new Redis(server);
    for await (const keys of client.scanStream({ match: `{${prefix}:*`, count: 1000 }))
      if (keys.length > 0) await client.unlink(keys);
    await client.quit();
  };
  return { url: url.href, clear };
}

async function inSchema() {
  const server = await serverUrl('postgres');
  const schema = `bench_${randomUUID().replaceAll('-', '')}`;
  const url = new URL(server);
  url.searchParams.set('schema', schema);
  const clear = async () => {
    const { Client } = await import('pg');
    const client = new Client({ connectionString: server });
    await client.connect();
    await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    await client.end();
  };
  return { url: url.href, clear };
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
