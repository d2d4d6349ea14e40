// What each engine can count exactly. A count does not know how long anything took, so a busy machine cannot change it.
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import type { Store } from '../../src/store/contract/index.js';
import { PostgresStore } from '../../src/store/postgres/index.js';
import { RedisStore } from '../../src/store/redis/index.js';
import { type Database, loadDriver, type Statement, type Value } from '../../src/store/sqlite/driver/load.js';
import { SqliteStore } from '../../src/store/sqlite/index.js';
import { startPostgres } from '../support/servers/postgres.js';
import { startRedis } from '../support/servers/redis.js';

/** By name. */
export type Counts = Record<string, number>;

export interface Ground {
  /** Open, and new. */
  store: Store;
  /** All that it has counted so far. The reading itself is not in it. */
  read(): Promise<Counts>;
  /** Resolves when the store does nothing more for the calls that it has answered. */
  rest?(): Promise<void>;
  close(): Promise<void>;
}

export interface Engine {
  version: string;
  newGround(): Promise<Ground>;
  close(): Promise<void>;
}

export const ENGINES = { sqlite: openSqlite, redis: openRedis, postgres: openPostgres };

async function openSqlite(): Promise<Engine> {
  const driver = await loadDriver();
  const { open } = driver;
  const total: Counts = {};
  const add = (name: string, count: number): void => void (total[name] = (total[name] ?? 0) + count);
  const counted = <Row extends Value[]>(sql: string, statement: Statement<Row>): Statement<Row> => {
    // The store looks whether a checkpoint is due when a moment has passed.
    if (sql.startsWith('PRAGMA')) return statement;
    const note = <T>(result: T, rows: (result: T) => number): T => {
      add('statements', 1);
      add('rows', rows(result));
      if (sql === 'COMMIT') add('commits', 1);
      return result;
    };
    const isControl = /^(BEGIN|COMMIT|ROLLBACK)/.test(sql);
    return {
      run: (...values) => note(statement.run(...values), (changes) => (isControl ? 0 : changes)),
      get: (...values) => note(statement.get(...values), (row) => (row === undefined ? 0 : 1)),
      all: (...values) => note(statement.all(...values), (rows) => rows.length),
    };
  };
  const [version = ''] = read<string>(open(':memory:'), 'SELECT sqlite_version()');
  driver.open = (file, options) => {
    const db = open(file, options);
    return {
      prepare: <Row extends Value[]>(sql: string) => counted(sql, db.prepare<Row>(sql)),
      exec: (sql) => db.exec(sql),
      close: () => db.close(),
      get inTransaction() {
        return db.inTransaction;
      },
    };
  };
  return {
    version,
    newGround: async () => {
      const folder = mkdtempSync(join(tmpdir(), 'holdfast-cost-'));
      const path = join(folder, 'jobs.db');
      // What is synced does not change what is counted.
      const store = new SqliteStore({ path, synchronous: 'normal' });
      await store.open();
      // While this one reads, the log does not begin anew, so its length is all that was written.
      const reader = open(path, { readOnly: true });
      reader.exec('BEGIN');
      reader.prepare('SELECT count(*) FROM sqlite_schema').get();
      return {
        store,
        read: async () => ({ ...total, wal: statSync(`${path}-wal`).size }),
        close: async () => {
          reader.close();
          await store.close();
          rmSync(folder, { recursive: true, force: true });
        },
      };
    },
    close: async () => {
      driver.open = open;
    },
  };
}

function read<T extends Value>(db: Database, sql: string): T[] {
  const row = db.prepare<T[]>(sql).get();
  db.close();
  return row ?? [];
}

const PING = '*1\r\n$4\r\nPING\r\n'.length;
const PONG = '+PONG\r\n'.length;

async function openRedis(): Promise<Engine> {
  const server = await startRedis();
  const client = new Redis(server.url);
  const info = async (section: string): Promise<string> => client.info(section);
  return {
    version: /redis_version:(\S+)/.exec(await info('server'))?.[1] ?? '',
    newGround: async () => {
      await client.flushall();
      const store = new RedisStore({ url: server.url });
      await store.open();
      const { stream } = store.client as { stream: { bytesRead: number; bytesWritten: number } };
      return {
        store,
        read: async () => {
          const calls = new Map(
            Array.from((await info('commandstats')).matchAll(/cmdstat_(\S+?):calls=(\d+)/g), ([, name, count]) => [
              name,
              Number(count),
            ]),
          );
          const of = (name: string): number => calls.get(name) ?? 0;
          // The store pings its connection when a second has passed, and `info` is ours.
          const commands = [...calls.values()].reduce((sum, count) => sum + count, 0) - of('ping') - of('info');
          return {
            roundTrips: of('evalsha'),
            commands,
            sent: stream.bytesWritten - of('ping') * PING,
            received: stream.bytesRead - of('ping') * PONG,
          };
        },
        close: () => store.close(),
      };
    },
    close: async () => {
      client.disconnect();
      await server.close();
    },
  };
}

/** Nothing on this server writes but the store, and no page is logged whole because a checkpoint went before. */
const ALONE = {
  autovacuum: 'off',
  full_page_writes: 'off',
  wal_level: 'minimal',
  max_wal_senders: '0',
  checkpoint_timeout: '1h',
  max_wal_size: '4GB',
  bgwriter_lru_maxpages: '0',
  fsync: 'off',
  allow_system_table_mods: 'on',
};

/** Its multiples, without their whole parts, are spread evenly. */
const GOLDEN = 0.618_033_988_749_895;

/**
 * Chance in the databases that are made from now on: the same in every run, and even. Each place of the code has a sequence of its own, so
 * that one that asks more often does not change what the others do.
 */
const EVEN_CHANCE = `ALTER FUNCTION pg_catalog.random() RENAME TO random_before;
  CREATE FUNCTION pg_catalog.random() RETURNS double precision LANGUAGE plpgsql VOLATILE AS $$
  DECLARE
    _place text;
    _draws int;
  BEGIN
    GET DIAGNOSTICS _place = PG_CONTEXT;
    _place := 'cost.at_' || md5(_place);
    _draws := coalesce(nullif(current_setting(_place, true), ''), '0')::int + 1;
    PERFORM set_config(_place, _draws::text, false);
    RETURN mod(_draws * ${GOLDEN}, 1)::double precision;
  END $$`;

/** Some upkeep is due when a second has passed. */
const STOPPED_CLOCK = `CREATE OR REPLACE FUNCTION holdfast.clock_ms() RETURNS double precision LANGUAGE sql VOLATILE
  AS $$ SELECT 1800000000000::double precision $$`;

const TOTALS = `SELECT (sum(n_tup_ins) + sum(n_tup_upd) + sum(n_tup_del))::float8 AS written,
  (sum(seq_tup_read) + sum(coalesce(idx_tup_fetch, 0)))::float8 AS read,
  (SELECT sum(coalesce(heap_blks_read, 0) + coalesce(heap_blks_hit, 0) + coalesce(idx_blks_read, 0) + coalesce(idx_blks_hit, 0) +
    coalesce(toast_blks_read, 0) + coalesce(toast_blks_hit, 0))::float8 FROM pg_statio_user_tables) AS buffers,
  pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 AS wal FROM pg_stat_user_tables`;

async function openPostgres(): Promise<Engine> {
  const server = await startPostgres({ settings: ALONE });
  const admin = new pg.Client({ connectionString: server.url });
  await admin.connect();
  let grounds = 0;
  const { prototype } = pg.Client;
  const query = prototype.query as (this: pg.Client, ...args: unknown[]) => Promise<pg.QueryResult>;
  let statements = 0;
  const clients = new Set<pg.Client>();
  const send = (client: pg.Client, text: string) => query.call(client, text);
  // The store leaves some upkeep to chance.
  const template = new pg.Client({ connectionString: server.url.replace(/postgres$/, 'template1') });
  await template.connect();
  await template.query(EVEN_CHANCE);
  await template.end();
  const { random } = Math;
  let draws = 0;
  Math.random = () => ((draws += 1) * GOLDEN) % 1;
  const underWay = new Set<Promise<unknown>>();
  prototype.query = function counted(this: pg.Client, ...args: unknown[]) {
    statements += 1;
    clients.add(this);
    const reply = query.apply(this, args);
    const ended = (): void => void underWay.delete(reply);
    underWay.add(reply);
    reply.then(ended, ended);
    return reply;
  } as typeof prototype.query;
  return {
    version: String((await send(admin, 'SHOW server_version')).rows[0]?.server_version).split('.')[0] ?? '',
    newGround: async () => {
      const name = `cost_${(grounds += 1)}`;
      await send(admin, `CREATE DATABASE ${name}`);
      const url = server.url.replace(/\/postgres$/, `/${name}`);
      clients.clear();
      draws = 0;
      // How many notifications it sends depends on the clock.
      const store = new PostgresStore({ url, notify: false });
      await store.open();
      const reader = new pg.Client({ connectionString: url });
      await reader.connect();
      await send(reader, STOPPED_CLOCK);
      return {
        store,
        read: async () => {
          // Each process of the server keeps what it has counted to itself, for a second or longer.
          for (const client of clients) await send(client, 'SELECT pg_stat_force_next_flush()');
          return { statements, ...((await send(reader, TOTALS)).rows[0] as Counts) };
        },
        rest: async () => {
          while (underWay.size > 0) await Promise.allSettled(underWay);
        },
        close: async () => {
          await store.close();
          await reader.end();
        },
      };
    },
    close: async () => {
      prototype.query = query as typeof prototype.query;
      Math.random = random;
      await admin.end();
      await server.close();
    },
  };
}
