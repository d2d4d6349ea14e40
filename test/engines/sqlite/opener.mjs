// A process that opens a new store at the moment that it is told, adds a job and closes: for tests of the first start of many.
import { SqliteStore } from '../../../dist/store/sqlite/index.js';

const job = (id) => ({ id, name: 'j', data: '{}', opts: '{}', priority: 0, delayMs: 0, lifo: false, timestamp: 1 });

process.on('message', async ({ path, at }) => {
  const store = new SqliteStore({ path });
  try {
    // All of them at once: timers would spread them over some milliseconds.
    while (Date.now() < at);
    await store.open();
    await store.add('q', [job(`from-${process.pid}`)], { caller: `${process.pid}`, seq: 1 });
    process.send('added');
  } catch ({ code, message }) {
    process.send(`${code}: ${message}`);
  } finally {
    await store.close();
  }
});
process.send('started');
