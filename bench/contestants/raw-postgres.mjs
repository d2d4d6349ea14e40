// The raw limit of PostgreSQL: one prepared statement that finishes the jobs of the call before and claims the next ones, on one
// connection, so that nobody else's rows are in the way. Every commit is synced.
import pg from 'pg';
import { exchangeLoop } from './raw-batches.mjs';

const TABLE = `
CREATE TABLE IF NOT EXISTS raw_jobs (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state smallint NOT NULL DEFAULT 0, data text NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX IF NOT EXISTS raw_jobs_waiting ON raw_jobs (id) WHERE state = 0;
CREATE TABLE IF NOT EXISTS raw_sessions (id int PRIMARY KEY, renewed_at bigint NOT NULL) WITH (fillfactor = 50)`;
const EXCHANGE = `
WITH finished AS (UPDATE raw_jobs SET state = 2 WHERE id = ANY ($1::bigint[])),
next AS (SELECT id FROM raw_jobs WHERE state = 0 ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED)
UPDATE raw_jobs AS job SET state = 1 FROM next WHERE job.id = next.id RETURNING job.id, job.data`;

/** Without an index that changes, so that PostgreSQL can write the row next to its older self. */
const RENEW = 'UPDATE raw_sessions SET renewed_at = $2 WHERE id = $1';

export async function open({ url }) {
  const pool = new pg.Pool({ connectionString: url });
  // A pool is ended before its connections are, and the database may be dropped in between; who waits for an answer hears of it there.
  pool.on('error', () => undefined);
  await pool.query(TABLE);
  const addBulk = (list) =>
    pool.query({
      name: 'add',
      text: 'INSERT INTO raw_jobs (data) SELECT unnest($1::text[])',
      values: [list.map((data) => JSON.stringify(data))],
    });
  let loop;
  return {
    add: async (data) => {
      await addBulk([data]);
      loop?.wake();
    },
    addBulk,
    work: async ({ concurrency }, handle, onDone) => {
      const client = await pool.connect();
      const exchange = async (finished, count) => {
        const { rows } = await client.query({ name: 'exchange', text: EXCHANGE, values: [finished, count], rowMode: 'array' });
        return rows;
      };
      loop = exchangeLoop(exchange, concurrency, handle, onDone);
      return {
        stop: async () => {
          await loop.stop();
          client.release();
        },
      };
    },
    sessions: async (count) => {
      await pool.query('INSERT INTO raw_sessions SELECT n, 0 FROM generate_series(0, $1 - 1) n', [count]);
      return (n) => pool.query({ name: 'renew', text: RENEW, values: [n, Date.now()] });
    },
    close: () => pool.end(),
  };
}
