// The raw limit of SQLite: better-sqlite3, WAL, every commit synced (`synchronous = FULL`), one transaction that finishes and claims.
import Database from 'better-sqlite3';
import { exchangeLoop } from './raw-batches.mjs';

export async function open({ url }) {
  const database = new Database(url.slice('sqlite:'.length));
  database.pragma('journal_mode = WAL');
  database.pragma('synchronous = FULL');
  database.exec(`
    CREATE TABLE IF NOT EXISTS jobs (id INTEGER PRIMARY KEY, state INTEGER NOT NULL DEFAULT 0, data TEXT NOT NULL);
    CREATE INDEX IF NOT EXISTS waiting ON jobs (id) WHERE state = 0;`);
  const insert = database.prepare('INSERT INTO jobs (data) VALUES (?)');
  const select = database.prepare('SELECT id, data FROM jobs WHERE state = 0 ORDER BY id LIMIT ?').raw();
  const move = database.prepare('UPDATE jobs SET state = ? WHERE id = ?');
  const addBulk = database.transaction((list) => {
    for (const data of list) insert.run(JSON.stringify(data));
  });
  const exchange = database.transaction((finished, count) => {
    for (const id of finished) move.run(2, id);
    const rows = select.all(count);
    for (const [id] of rows) move.run(1, id);
    return rows;
  });
  let loop;
  return {
    add: async (data) => {
      addBulk([data]);
      loop?.wake();
    },
    addBulk: async (list) => addBulk(list),
    work: async ({ concurrency }, handle, onDone) => {
      // A turn of the loop between two transactions, or nobody else in the process would ever get one.
      const fair = async (finished, count) => {
        await new Promise((resolve) => setImmediate(resolve));
        return exchange.immediate(finished, count);
      };
      loop = exchangeLoop(fair, concurrency, handle, onDone);
      return loop;
    },
    close: async () => database.close(),
  };
}
