// Joins a transaction of the user: any object that can run SQL with parameters. It is recognised by its methods, so that no package of
// the user is needed here. An object that is surely not a transaction (a pool, a database handle, an idle client) is refused: outside of
// a transaction, the job would stay when the rest is rolled back.
import { HoldfastError } from '../../../errors.js';
import { toTransactionError } from './errors.js';
import { quoteName } from './options.js';
import type { Server, Values } from './server.js';

/** Runs SQL with parameters $1, $2 …, and returns the rows. */
type RunSql = (text: string, values: unknown[]) => Promise<unknown[]>;

/** The arguments of notify_changes: the notification that is sent with the commit. */
type Notification = [channel: string, payloads: string[]] | undefined;

/** Returns a server whose calls run in the transaction. */
export function joinTransaction(server: Server, transaction: unknown, notification: Notification): Pick<Server, 'call'> {
  const run = runnerOf(transaction);
  return {
    call: async <T>(name: string, given: Values): Promise<T> => {
      const { text, values } = server.statement(name, given);
      const tell = `, ${quoteName(server.circumstance.schema)}.notify_changes($${values.length + 1}, $${values.length + 2})`;
      let row: unknown;
      try {
        [row] = await (notification === undefined ? run(text, values) : run(text + tell, [...values, ...notification]));
      } catch (error) {
        throw toTransactionError(error, server.circumstance);
      }
      const reply = (row as { reply?: unknown } | undefined)?.reply;
      if (typeof reply === 'string') return JSON.parse(reply) as T;
      throw refused('answered a statement without its rows. Its query(text, values) must answer { rows }, or the rows');
    },
  };
}

interface Able {
  query?: (text: string, values: unknown[]) => Promise<unknown>;
  raw?: (text: string, values: unknown[]) => Promise<unknown>;
  execute?: (query: unknown) => Promise<unknown>;
  executeQuery?: (query: unknown) => Promise<unknown>;
  $queryRawUnsafe?: (text: string, ...values: unknown[]) => Promise<unknown>;
  $connect?: unknown;
  rollback?: unknown;
  isTransaction?: boolean;
  totalCount?: number;
  getTransactionStatus?: () => string | null;
}

function runnerOf(transaction: unknown): RunSql {
  const usable = (typeof transaction === 'object' && transaction !== null) || typeof transaction === 'function';
  const able: Able = usable ? (transaction as Able) : {};
  if (typeof able.$queryRawUnsafe === 'function') return prisma(able);
  if (typeof able.executeQuery === 'function') return kysely(able);
  if (typeof able.raw === 'function') return knex(able);
  if (typeof able.execute === 'function') return drizzle(able);
  if (typeof able.query === 'function') return client(able);
  throw refused(
    'can run no SQL. Pass a client of pg, a transaction of Knex, Kysely, Drizzle or Prisma, or { query(text, values) }',
  );
}

function client(able: Able): RunSql {
  if (typeof able.totalCount === 'number')
    throw refused('is a pool. Take a client from it (await pool.connect()), begin a transaction on it, and pass the client');
  if (able.getTransactionStatus?.() === 'I')
    throw refused("is a client on which no transaction is open. Run BEGIN first (await client.query('BEGIN'))");
  return async (text, values) => rowsOf(await able.query?.(text, values));
}

function knex(able: Able): RunSql {
  if (able.isTransaction !== true) throw refused('is not a transaction of Knex. Pass what knex.transaction() gives you');
  return async (text, values) => rowsOf(await able.raw?.(text.replace(/\$\d+/g, '?'), values));
}

function kysely(able: Able): RunSql {
  if (able.isTransaction !== true)
    throw refused('is not a transaction of Kysely. Pass what db.transaction().execute() gives you');
  return async (text, values) => {
    const query = { kind: 'RawNode', sqlFragments: [text], parameters: [] };
    return rowsOf(await able.executeQuery?.({ sql: text, parameters: values, query, queryId: { queryId: 'holdfast' } }));
  };
}

/** Drizzle runs an object that returns its SQL text. */
function drizzle(able: Able): RunSql {
  if (typeof able.rollback !== 'function') throw refused('is not a transaction of Drizzle. Pass what db.transaction() gives you');
  return async (text, values) => {
    const query = { sql: text, params: values };
    const statement = { getSQL: () => statement, toQuery: () => query };
    return rowsOf(await able.execute?.(statement));
  };
}

/** Only the client outside of a transaction can connect. */
function prisma(able: Able): RunSql {
  if (able.$connect !== undefined)
    throw refused('is not a transaction of Prisma. Pass what prisma.$transaction(async (tx) => …) gives you');
  return async (text, values) => {
    try {
      return rowsOf(await able.$queryRawUnsafe?.(text, ...values));
    } catch (error) {
      throw serverErrorOf(error);
    }
  };
}

/** Prisma has codes of its own, and keeps the error of the server beside them. */
function serverErrorOf(error: unknown): unknown {
  const { meta } = error as { meta?: { driverAdapterError?: { cause?: { originalCode?: string; originalMessage?: string } } } };
  const { originalCode: code, originalMessage } = meta?.driverAdapterError?.cause ?? {};
  return code === undefined ? error : Object.assign(new Error(originalMessage, { cause: error }), { code });
}

function rowsOf(answer: unknown): unknown[] {
  if (Array.isArray(answer)) return answer;
  const rows = (answer as { rows?: unknown } | null | undefined)?.rows;
  return Array.isArray(rows) ? rows : [];
}

function refused(what: string): HoldfastError {
  return new HoldfastError('INVALID_OPTION', `transaction ${what}.`, { option: 'transaction', store: 'postgres' });
}
