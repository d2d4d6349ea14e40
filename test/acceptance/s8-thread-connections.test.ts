// S8-10: the lock thread renews with what programs written for BullMQ pass as a connection: instances of ioredis, pools of pg, certificates as
// Buffers, URL objects, options with functions that the thread does not need. What it needs and cannot get is named once.
import { chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Connection, type HoldfastError, Queue, Worker } from 'holdfast';
import { Cluster, Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { makeCertificates } from '../support/servers/certificates.js';
import { freePort } from '../support/servers/free-port.js';
import { startPostgres, userOf } from '../support/servers/postgres.js';
import { startRedis } from '../support/servers/redis.js';
import { freshDatabase, shared } from '../support/servers/shared.js';
import { paced } from '../support/wait/pace.js';
import { until } from '../support/wait/until.js';

type Engine = 'redis' | 'postgres';
interface Place {
  /** Of each kind of connection by its name, new at every call. */
  good: Record<string, () => Connection>;
  /** By the path that is named. */
  bad: Record<string, () => Connection>;
  close(): Promise<unknown>;
}

/**
 * The loop is blocked for a quarter longer, and for less than the 5 s in which a node of a Redis Cluster must reply: ioredis takes a reply that
 * lies unread behind a longer block for lost.
 */
const LOCK_MS = 3200;
const folder = mkdtempSync(join(tmpdir(), 'holdfast-thread-connections-'));
const at = (name: string): string => join(folder, name);
const buffers = () => ({
  ca: readFileSync(at('ca.pem')),
  cert: readFileSync(at('client.pem')),
  key: readFileSync(at('client.key')),
});
let closers: (() => unknown)[] = [];

function use<T extends Redis | Cluster | pg.Pool>(client: T): T {
  closers.push(() => ('disconnect' in client ? client.disconnect() : client.end()));
  return client;
}

const PLACES: Record<Engine, () => Promise<Place>> = {
  redis: async () => {
    const [url, cluster, port] = [await shared('redis'), await shared('redis-cluster'), await freePort()];
    const settings = {
      'tls-port': `${port}`,
      'tls-cert-file': at('server.pem'),
      'tls-key-file': at('server.key'),
      'tls-ca-cert-file': at('ca.pem'),
      'tls-auth-clients': 'yes',
    };
    const server = await startRedis({ settings });
    const { hostname: host, port: plainPort } = new URL(url);
    const retryStrategy = () => 100;
    return {
      good: {
        'an instance': () => use(new Redis(url, { maxRetriesPerRequest: null, lazyConnect: true, retryStrategy })),
        'an instance with certificates': () => use(new Redis({ host: '127.0.0.1', port, tls: buffers(), lazyConnect: true })),
        'an instance of Cluster': () => use(new Cluster([cluster], { lazyConnect: true })),
        'options with functions': () => ({ host, port: Number(plainPort), retryStrategy, reconnectOnError: () => false }),
        'certificates as Buffers': () => ({ url: `rediss://127.0.0.1:${port}`, tls: buffers() }),
        'a URL object': () => new URL(url),
        'a URL object among options': () => ({ url: new URL(url), maxRetriesPerRequest: null }) as unknown as Connection,
      },
      bad: {
        'connection.tls.checkServerIdentity': () => ({
          url: `rediss://127.0.0.1:${port}`,
          tls: { ...buffers(), checkServerIdentity: () => undefined },
        }),
      },
      close: () => server.close(),
    };
  },
  postgres: async () => {
    const user = userOf();
    if (user !== undefined) chownSync(at('server.key'), user.uid, user.gid);
    const ssl = { ssl: 'on', ssl_cert_file: at('server.pem'), ssl_key_file: at('server.key') };
    const server = await startPostgres({ settings: { ...ssl, max_connections: '200' } });
    const database = await freshDatabase();
    const { hostname: host, port, username, password, pathname } = new URL(database.url);
    const plain = { host, port: Number(port), user: username, database: pathname.slice(1) };
    return {
      good: {
        'a pool': () => use(new pg.Pool({ ...plain, password, log: () => undefined })),
        'a pool with a connection string': () => use(new pg.Pool({ connectionString: database.url })),
        'a pool with certificates': () => use(new pg.Pool({ connectionString: server.url, ssl: buffers() })),
        'certificates as Buffers': () => ({ url: server.url, ssl: buffers() }),
        'a URL object': () => new URL(database.url),
      },
      bad: {
        'connection.password': () => use(new pg.Pool({ ...plain, password: () => password })),
        'connection.stream': () => ({ url: database.url, stream: () => new Socket() }),
      },
      close: () => Promise.all([server.close(), database.drop()]),
    };
  },
};

interface Started {
  queue: Queue;
  worker: Worker;
  errors: HoldfastError[];
}

/** `tag`: other connections may lead to the same server. */
function start(tag: string, connection: Connection, handler: (held: () => boolean) => Promise<unknown>): Started {
  const name = `s8-${tag.replaceAll(' ', '-')}-${process.pid}`;
  const errors: HoldfastError[] = [];
  const queue = new Queue(name, { connection });
  const worker = new Worker(name, (job) => handler(() => job.lock?.held === true), { connection, lockDuration: LOCK_MS });
  worker.on('error', (error) => errors.push(error as HoldfastError));
  onTestFinished(async () => {
    await worker.close();
    await queue.obliterate({ force: true });
    await queue.close();
  });
  return { queue, worker, errors };
}

beforeAll(() => makeCertificates(folder));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each(['redis', 'postgres'] as const)('S8-10 on %s', (engine) => {
  let place: Place;
  beforeAll(async () => {
    place = await PLACES[engine]();
  }, 60_000);
  afterAll(async () => {
    await Promise.all(closers.map((close) => close()));
    closers = [];
    await place.close();
  });

  test('S8-10 the thread renews with each kind of connection while the loop is blocked', { timeout: paced(60_000) }, async () => {
    const names = Object.keys(place.good);
    let waiting = 0;
    let open: () => void = () => undefined;
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    const handler = async (held: () => boolean): Promise<boolean> => {
      waiting += 1;
      await opened;
      return held();
    };
    const all = names.map((name) => start(name, (place.good[name] as () => Connection)(), handler));
    const states = (): string[] => all.map(({ worker, errors }) => errors[0]?.message ?? worker.health().lockThread);
    await until('each thread to renew, or an error', () => states().every((state) => !['starting', 'loop'].includes(state)));
    expect(Object.fromEntries(states().map((state, i) => [names[i], state]))).toEqual(
      Object.fromEntries(names.map((name) => [name, 'thread'])),
    );
    const done = all.map(({ worker }) => new Promise((resolve) => worker.once('completed', (_job, result) => resolve(result))));
    await Promise.all(all.map(({ queue }) => queue.add('job', {})));
    await until('all jobs wait', () => waiting === names.length);
    const end = performance.now() + 1.25 * LOCK_MS;
    while (performance.now() < end);
    open();
    expect(await Promise.all(done)).toEqual(names.map(() => true));
    expect(all.flatMap(({ errors }) => errors)).toEqual([]);
  });

  test('S8-10 an option that the thread needs and cannot get is named once, and the loop renews', {
    timeout: paced(30_000),
  }, async () => {
    for (const [path, connect] of Object.entries(place.bad)) {
      const { queue, worker, errors } = start(path, connect(), async (held) => held());
      await worker.waitUntilReady();
      const done = new Promise((resolve) => worker.once('completed', (_job, result) => resolve(result)));
      await queue.add('job', {});
      expect(await done).toBe(true);
      expect(errors).toHaveLength(1);
      expect(errors[0]).toMatchObject({ code: 'THREAD_FAILED', cause: { code: 'NOT_CLONEABLE', option: path } });
      expect(errors[0]?.message).toContain(`${path} is a function`);
      expect(errors[0]?.message).toContain('{ module, export }');
      expect(worker.health().lockThread).toBe('loop');
    }
  });
});
