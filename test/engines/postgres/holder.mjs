// Opens a session on PostgreSQL and lives until it is killed.
import { PostgresStore } from '../../../dist/store/postgres/index.js';

const { url, session } = JSON.parse(process.argv[2]);
const store = new PostgresStore({ url });
await store.open();
await store.openSession(session);
process.send('holding');
setInterval(() => undefined, 1_000);
