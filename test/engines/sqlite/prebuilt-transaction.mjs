// Adds a job in a transaction while the store uses the SQLite that the package brings. Prints why that is refused.
import { SqliteStore } from '../../../dist/store/sqlite/index.js';

const [, , path] = process.argv;
const store = new SqliteStore({ path });
await store.open();
const job = { name: 'a', data: '{}', opts: '{}', priority: 0, delayMs: 0, lifo: false, timestamp: 0 };
await store.add('q', [job], { caller: 'p', seq: 1 }, {}).catch(({ code, message }) => console.log(`${code} ${message}`));
await store.close();
