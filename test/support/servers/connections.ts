// Who is connected to a server, seen and cut from the server's side.
import { Client } from 'pg';
import type { ServerEngine } from '../processes/crew.js';
import { askRedis } from './redis.js';
import type { TestServer } from './server.js';

export interface Connected {
  id: string;
  /** It is there to hear of changes. */
  listens: boolean;
}

export interface Switchboard {
  connections(): Promise<Connected[]>;
  cut(id: string): Promise<void>;
  close(): Promise<void>;
}

const OPEN: Record<ServerEngine, (server: TestServer) => Promise<Switchboard>> = { redis: onRedis, postgres: onPostgres };

export function switchboardOf(engine: ServerEngine, server: TestServer): Promise<Switchboard> {
  return OPEN[engine](server);
}

async function onRedis({ port }: TestServer): Promise<Switchboard> {
  return {
    connections: async () => {
      const replies = await askRedis(port, 'CLIENT LIST');
      const lines = replies.split('\n').filter((line) => line.startsWith('id=') && !line.includes('cmd=client'));
      return lines.map((line) => ({ id: /^id=(\d+)/.exec(line)?.[1] ?? '', listens: !/ sub=0 /.test(line) }));
    },
    cut: async (id) => void (await askRedis(port, `CLIENT KILL ID ${id}`)),
    close: () => Promise.resolve(),
  };
}

async function onPostgres({ url }: TestServer): Promise<Switchboard> {
  const client = new Client({ connectionString: url });
  await client.connect();
  return {
    connections: async () => {
      const { rows } = await client.query<{ id: string; listens: boolean }>(
        `SELECT pid::text AS id, EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.locktype = 'advisory') AS listens
           FROM pg_stat_activity a WHERE application_name = 'holdfast'`,
      );
      return rows;
    },
    cut: async (id) => void (await client.query('SELECT pg_terminate_backend($1)', [id])),
    close: () => client.end(),
  };
}
