// Converts the ways in which other libraries name a Redis to a Holdfast connection. Without any, HOLDFAST_URL or the SQLite file is used,
// as everywhere in Holdfast.
import type { Connection, ServerConnection } from '../store/connection.js';

export interface Reached {
  /** Any Holdfast connection; takes precedence over the others. */
  connection?: Connection | undefined;
  /** Any URL that Holdfast accepts, including `redis://…`. */
  url?: string | undefined;
  /** A URL, the options of an ioredis client, or a client. */
  redis?: string | object | undefined;
}

export function connectionFrom({ connection, url, redis }: Reached): Connection | undefined {
  if (connection !== undefined) return connection;
  if (typeof redis === 'string') return url ?? redis;
  if (redis === undefined) return url;
  if (url !== undefined) return { ...(redis as ServerConnection), url };
  const { client, ...options } = redis as { client?: Connection } & ServerConnection;
  if (client !== undefined) return client;
  if (typeof options.url === 'string' || typeof (redis as { duplicate?: unknown }).duplicate === 'function')
    return redis as Connection;
  // The defaults of ioredis.
  return { host: '127.0.0.1', port: 6379, ...options };
}
