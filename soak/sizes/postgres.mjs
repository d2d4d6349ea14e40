import pg from 'pg';

const PATIENCE_MS = 2000;
const TABLES =
  "SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND n.nspname !~ '^(pg_|information_schema)'";
const QUESTION = `SELECT
  (SELECT sum(pg_total_relation_size(oid)) FROM (${TABLES}) AS tables) AS store,
  (SELECT sum(n_dead_tup) FROM pg_stat_user_tables) AS dead,
  (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()) AS connections`;

export async function postgresSize({ server }) {
  const client = new pg.Client({
    connectionString: server.url,
    connectionTimeoutMillis: PATIENCE_MS,
    query_timeout: PATIENCE_MS,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query(QUESTION);
    return Object.fromEntries(Object.entries(rows[0]).map(([name, text]) => [name, Number(text)]));
  } finally {
    void client.end().catch(() => undefined);
  }
}
