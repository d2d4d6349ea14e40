// @boringnode/queue 0.6 on Redis, PostgreSQL and SQLite (WAL, fsynced), with its default options: finished jobs are deleted, and an idle
// worker looks again after 2 s.
import { Job, Locator, QueueManager, QueueSchemaService, Worker } from '@boringnode/queue';
import { knex as onKnex } from '@boringnode/queue/drivers/knex_adapter';
import { redis } from '@boringnode/queue/drivers/redis_adapter';
import { Redis } from 'ioredis';
import knex from 'knex';

/** Its statement for more is one that SQLite refuses. */
const SQLITE_BULK = 400;

let handler = async () => undefined;
let told = () => undefined;

class WorkJob extends Job {
  async execute() {
    await handler(this.payload);
    told();
  }
}

export async function open({ url, queue }) {
  WorkJob.options = { queue, name: 'WorkJob' };
  const { adapter, end } = url.startsWith('redis:') ? onRedis(url) : await onDatabase(url);
  const most = url.startsWith('sqlite:') ? SQLITE_BULK : Number.MAX_SAFE_INTEGER;
  const config = { default: 'main', adapters: { main: adapter }, autoLoadJobs: false };
  Locator.register('WorkJob', WorkJob);
  await QueueManager.init(config);
  return {
    add: (data) => WorkJob.dispatch(data).run(),
    addBulk: async (list) => {
      for (let from = 0; from < list.length; from += most) await WorkJob.dispatchMany(list.slice(from, from + most)).run();
    },
    work: async ({ concurrency, lockMs }, handle, onDone) => {
      handler = handle;
      told = onDone;
      const times = lockMs === undefined ? {} : { stalledThreshold: lockMs, stalledInterval: lockMs / 2, maxStalledCount: 5 };
      const worker = new Worker({ ...config, worker: { concurrency, gracefulShutdown: false, ...times } });
      // It settles when the worker is stopped.
      worker.start([queue]).catch((error) => console.error(error.message));
      return { stop: () => worker.stop() };
    },
    close: async () => {
      await QueueManager.destroy();
      await end();
    },
  };
}

function onRedis(url) {
  const connection = new Redis(url);
  return { adapter: redis(connection), end: async () => connection.disconnect() };
}

async function onDatabase(url) {
  const connection = url.startsWith('sqlite:')
    ? await inFile(url.slice('sqlite:'.length))
    : knex({ client: 'pg', connection: url });
  const schema = new QueueSchemaService(connection);
  if (!(await connection.schema.hasTable('queue_jobs'))) {
    await schema.createJobsTable();
    await schema.createSchedulesTable();
  }
  return { adapter: onKnex(connection), end: () => connection.destroy() };
}

async function inFile(filename) {
  const connection = knex({ client: 'better-sqlite3', connection: { filename }, useNullAsDefault: true });
  await connection.raw('PRAGMA journal_mode = WAL');
  await connection.raw('PRAGMA synchronous = FULL');
  return connection;
}
