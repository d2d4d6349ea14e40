// Redis servers for tests: one, or a cluster. Killed, it has kept nothing unless the settings say so; it is set to
// save once a year, because a store warns of a Redis that never does.
import { connect } from 'node:net';
import { join } from 'node:path';
import { folderOf } from './programs.js';
import { type ServerPlan, TestServer } from './server.js';

export interface RedisOptions {
  /** As in redis.conf: `{ appendonly: 'yes', appendfsync: 'always' }`. */
  settings?: Record<string, string>;
}

export async function startRedis(options: RedisOptions = {}): Promise<TestServer> {
  return TestServer.start(await redisPlan(options));
}

export async function redisPlan(options: RedisOptions): Promise<ServerPlan> {
  const settings = { bind: '127.0.0.1', save: '31536000 1', appendonly: 'no', ...options.settings };
  return {
    name: 'redis',
    command: join(await folderOf('redis'), 'redis-server'),
    args: ({ folder, port }) =>
      Object.entries({ port: `${port}`, dir: folder, ...settings }).flatMap(([key, value]) => [`--${key}`, ...words(value)]),
    url: (port) => `redis://127.0.0.1:${port}`,
    isReady: async ({ port, pid }) => {
      const reply = await askRedis(port, 'PING', 'INFO server').catch(String);
      // One that asks for a password is there, and does not say more.
      return reply.startsWith('-NOAUTH') || (reply.startsWith('+PONG') && reply.includes(`process_id:${pid}\r\n`));
    },
    signals: { restart: 'SIGTERM', close: 'SIGKILL' },
  };
}

/** All replies to some commands, as Redis writes them, on a connection of their own. */
export function askRedis(port: number, ...commands: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    let replies = '';
    const socket = connect(port, '127.0.0.1', () => socket.write([...commands, 'QUIT', ''].join('\r\n')));
    socket.setTimeout(1_000, () => socket.destroy(new Error('Redis does not answer.')));
    socket.on('data', (chunk) => {
      replies += chunk.toString();
    });
    socket.once('error', reject);
    socket.once('close', () => resolve(replies));
  });
}

/** `replicaof: 'host port'` is two arguments, and an empty value one. */
function words(value: string): string[] {
  return value.split(' ');
}
