// A fresh place for one run on a store: a name under which nobody else has keys, a database, a file. Nothing of it is left afterwards.
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore } from 'holdfast';
import { Redis } from 'ioredis';
import pg from 'pg';
import { serverUrl } from './servers.mjs';

const MAKERS = { memory: inMemory, sqlite: inFile, redis: underName, postgres: inDatabase };

/** Gives `work` a `{ url, queue }`; the queue's name is unique, so it keeps contestants on one Redis apart. */
export async function withPlace(store, work) {
  const queue = `bench${randomUUID().replaceAll('-', '')}`;
  const { url, clear } = await MAKERS[store](queue);
  try {
    return await work({ url, queue });
  } finally {
    await clear();
  }
}

/** The same, with a store of Holdfast's opened there. */
export function withStore(store, work) {
  return withPlace(store, async ({ url, queue }) => {
    const opened = await openStore(url);
    try {
      return await work(opened, queue);
    } finally {
      await opened.close();
    }
  });
}

async function inMemory() {
  return { url: 'memory:', clear: async () => undefined };
}

async function inFile() {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-bench-'));
  return { url: `sqlite:${join(folder, 'jobs.db')}`, clear: () => rm(folder, { recursive: true, force: true }) };
}

async function underName(name) {
  const url = await serverUrl('redis');
  const clear = async () => {
    const client = new Redis(url);
    for await (const keys of client.scanStream({ match: `*${name}*`, count: 1000 }))
      if (keys.length > 0) await client.unlink(keys);
    await client.quit();
  };
  return { url, clear };
}

async function inDatabase(name) {
  const server = await serverUrl('postgres');
  await ask(server, `CREATE DATABASE ${name}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  return { url: url.href, clear: () => ask(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`) };
}

async function ask(url, statement) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
