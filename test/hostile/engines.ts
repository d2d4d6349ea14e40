// Every store, with nobody else's data in it.
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freshDatabase, shared } from '../support/servers/shared.js';

export interface OpenEngine {
  connection: string;
  close(): Promise<void>;
}

export const ENGINES: Record<string, () => Promise<OpenEngine>> = {
  memory: async () => ({ connection: `memory:${randomUUID()}`, close: async () => undefined }),
  sqlite: async () => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-hostile-'));
    return { connection: `sqlite:${join(folder, 'jobs.db')}`, close: () => rm(folder, { recursive: true, force: true }) };
  },
  postgres: async () => {
    const { url, drop } = await freshDatabase();
    return { connection: url, close: drop };
  },
  redis: async () => ({ connection: `${await shared('redis')}?prefix=hostile-${randomUUID()}`, close: async () => undefined }),
  'redis cluster': async () => ({
    connection: `${await shared('redis-cluster')}?prefix=hostile-${randomUUID()}`,
    close: async () => undefined,
  }),
};
