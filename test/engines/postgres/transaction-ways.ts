// The ways in which people have a transaction open on PostgreSQL, each with the package that they use for it.
import { PrismaPg } from '@prisma/adapter-pg';
import { getPrismaClient } from '@prisma/client/runtime/client';
import { drizzle } from 'drizzle-orm/node-postgres';
import { sql as drizzleSql } from 'drizzle-orm';
import knex, { type Knex } from 'knex';
import { Kysely, PostgresDialect, sql, type Transaction } from 'kysely';
import { type ClientBase, Pool, type PoolClient } from 'pg';
import { onTestFinished } from 'vitest';

export interface Way {
  /** Commits when `work` resolves and rolls back when it rejects, as the package does it. */
  transact(work: (transaction: object) => Promise<unknown>): Promise<unknown>;
  /** A savepoint inside it: rolled back alone when `work` rejects. */
  nested(transaction: object, work: (transaction: object) => Promise<unknown>): Promise<unknown>;
  /** Runs a statement of the user's. */
  run(transaction: object, text: string): Promise<unknown>;
  /** What people pass by mistake: it runs SQL outside of any transaction. */
  outside: object;
}

export function newPool(url: string): Pool {
  const pool = new Pool({ connectionString: url, max: 5 });
  pool.on('error', () => undefined);
  onTestFinished(() => pool.end());
  return pool;
}

async function bracket(
  client: ClientBase,
  [begin, commit, rollback]: [string, string, string],
  work: () => Promise<unknown>,
): Promise<unknown> {
  await client.query(begin);
  try {
    const result = await work();
    await client.query(commit);
    return result;
  } catch (error) {
    await client.query(rollback);
    throw error;
  }
}

export function pgWay(url: string): Way {
  const pool = newPool(url);
  return {
    async transact(work) {
      const client = await pool.connect();
      try {
        return await bracket(client, ['BEGIN', 'COMMIT', 'ROLLBACK'], () => work(client));
      } finally {
        client.release();
      }
    },
    nested: (client, work) => bracket(client as PoolClient, ['SAVEPOINT a', 'RELEASE a', 'ROLLBACK TO a'], () => work(client)),
    run: (client, text) => (client as PoolClient).query(text),
    outside: pool,
  };
}

/** Anything that has nothing but `query(text, values)`, and answers the rows themselves. */
export function queryWay(url: string): Way {
  const way = pgWay(url);
  const bare = (client: object): object => ({
    query: async (text: string, values: unknown[]) => (await (client as PoolClient).query(text, values)).rows as unknown[],
  });
  return {
    ...way,
    transact: (work) => way.transact((client) => work(Object.assign(bare(client), { client }))),
    nested: (tx, work) => way.nested(clientOf(tx), () => work(tx)),
    run: (tx, text) => way.run(clientOf(tx), text),
  };
}

const clientOf = (bare: object): object => (bare as { client: object }).client;

export function knexWay(url: string): Way {
  const db = knex({ client: 'pg', connection: url });
  onTestFinished(() => db.destroy());
  return {
    transact: (work) => db.transaction((trx) => work(trx)),
    nested: (trx, work) => (trx as Knex.Transaction).transaction((inner) => work(inner)),
    run: async (trx, text) => (trx as Knex.Transaction).raw(text),
    outside: db,
  };
}

export function kyselyWay(url: string): Way {
  const db = new Kysely<object>({ dialect: new PostgresDialect({ pool: new Pool({ connectionString: url }) }) });
  onTestFinished(() => db.destroy());
  return {
    transact: (work) => db.transaction().execute((trx) => work(trx)),
    nested: (trx, work) => {
      const run = (text: string) => sql.raw(text).execute(trx as Transaction<object>);
      return run('SAVEPOINT a').then(() =>
        work(trx).then(
          () => run('RELEASE a'),
          (error: unknown) => run('ROLLBACK TO a').then(() => Promise.reject(error as Error)),
        ),
      );
    },
    run: (trx, text) => sql.raw(text).execute(trx as Transaction<object>),
    outside: db,
  };
}

export function drizzleWay(url: string): Way {
  const db = drizzle(newPool(url));
  type Tx = Parameters<Parameters<typeof db.transaction>[0]>[0];
  return {
    transact: (work) => db.transaction((tx) => work(tx)),
    nested: (tx, work) => (tx as Tx).transaction((inner) => work(inner)),
    run: (tx, text) => (tx as Tx).execute(drizzleSql.raw(text)),
    outside: db,
  };
}

interface PrismaClient {
  $transaction<T>(work: (tx: PrismaClient) => Promise<T>, options?: object): Promise<T>;
  $executeRawUnsafe(text: string): Promise<number>;
  $disconnect(): Promise<void>;
}

/** A client for a schema without models, as `prisma generate` writes it: the generator itself would be downloaded from elsewhere. */
function newPrisma(url: string): PrismaClient {
  const compiler = '@prisma/client/runtime/query_compiler_fast_bg.postgresql';
  const config = {
    previewFeatures: [],
    clientVersion: '7.10.0',
    engineVersion: '',
    activeProvider: 'postgresql',
    inlineSchema: 'datasource db {\n  provider = "postgresql"\n}\n',
    runtimeDataModel: { models: {}, enums: {}, types: {} },
    parameterizationSchema: { strings: [], graph: 'AAAA' },
    compilerWasm: {
      getRuntime: () => import(`${compiler}.js`),
      getQueryCompilerWasmModule: async () => {
        const { wasm } = (await import(`${compiler}.wasm-base64.js`)) as { wasm: string };
        const { Module } = (globalThis as unknown as { WebAssembly: { Module: new (bytes: Uint8Array) => object } }).WebAssembly;
        return new Module(Buffer.from(wasm, 'base64'));
      },
      importName: './query_compiler_fast_bg.js',
    },
  };
  const Client = getPrismaClient(config as never) as unknown as new (options: object) => PrismaClient;
  return new Client({ adapter: new PrismaPg({ connectionString: url }) });
}

export function prismaWay(url: string): Way {
  const db = newPrisma(url);
  onTestFinished(() => db.$disconnect());
  return {
    transact: (work) => db.$transaction((tx) => work(tx), { timeout: 60_000 }),
    nested: (tx, work) => (tx as PrismaClient).$transaction((inner) => work(inner)),
    run: (tx, text) => (tx as PrismaClient).$executeRawUnsafe(text),
    outside: db,
  };
}
