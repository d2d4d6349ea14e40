// Runs on a file system of 2 MB: fills it, and tells what happened as JSON.
import fs from 'node:fs';
import path from 'node:path';
import driver from '../../../dist/store/sqlite/driver/load.js';
import { SqliteStore } from '../../../dist/store/sqlite/index.js';

const file = path.join(process.argv[2], 'jobs.db');
const ballast = path.join(process.argv[2], 'ballast');
const job = {
  name: 'n',
  data: JSON.stringify('x'.repeat(1_000)),
  opts: '{}',
  priority: 0,
  delayMs: 0,
  lifo: false,
  timestamp: 0,
};
const report = { acknowledged: 0 };

const store = new SqliteStore({ path: file });
await store.open();
fs.writeFileSync(ballast, Buffer.alloc(600_000));
for (let seq = 1; report.code === undefined; seq += 1) {
  try {
    report.acknowledged += (await store.add('q', Array(20).fill(job), { caller: 'p', seq })).length;
  } catch ({ code, retryable, message }) {
    Object.assign(report, { code, retryable, message });
  }
}
report.kept = (await store.status('q')).counts.waiting;
fs.rmSync(ballast);
report.after = await store.add('q', [job], { caller: 'later', seq: 1 }).then(
  () => 'added',
  ({ message }) => message,
);
await store.close();
const db = (await driver.loadDriver()).open(file);
[report.integrity] = db.prepare('PRAGMA integrity_check').get();
report.kept = db.prepare('SELECT count(*) FROM jobs').get()[0] - 1;
db.close();
process.stdout.write(JSON.stringify(report));
