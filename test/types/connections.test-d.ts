// Compiled, never run: what a connection and a transaction may be.
import { Redis, type RedisOptions } from 'ioredis';
import type { Knex } from 'knex';
import type { Transaction } from 'kysely';
import { Client, Pool } from 'pg';
import { Queue } from '../../src/queue/queue.js';
import { migratePostgres } from '../../src/store/open.js';
import { Worker } from '../../src/worker/worker.js';

new Queue('q', { connection: new Pool() });
new Queue('q', { connection: new Redis() });
declare const redisOptions: RedisOptions;
new Queue('q', { connection: redisOptions });
new Worker('q', null, { connection: new Pool() });
new Queue('q', { connection: { url: 'postgres://localhost/app', schema: 'jobs', migrate: false } });
new Queue('q', { connection: { host: 'localhost', port: 6379 } });
// @ts-expect-error a client is not a pool
new Queue('q', { connection: new Client() });
await migratePostgres(new Pool(), { schema: 'jobs' });

const queue = new Queue<{ welcome: { data: { to: string } } }>('q');
declare const knex: Knex.Transaction;
declare const kysely: Transaction<object>;
for (const transaction of [new Client(), knex, kysely]) {
  await queue.add('welcome', { to: 'a' }, { transaction, delay: 5 });
  await queue.addBulk([{ name: 'welcome', data: { to: 'a' } }], { transaction });
}
// @ts-expect-error a transaction is an object
await queue.add('welcome', { to: 'a' }, { transaction: 'BEGIN' });
// @ts-expect-error all jobs of a bulk go the same way
await queue.addBulk([{ name: 'welcome', data: { to: 'a' }, opts: { transaction: knex } }]);
