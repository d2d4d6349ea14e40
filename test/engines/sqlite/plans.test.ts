import { describe, expect, it } from 'vitest';
import { Adding } from '../../../src/store/sqlite/add.js';
import { Callers } from '../../../src/store/sqlite/callers.js';
import { Changing } from '../../../src/store/sqlite/change.js';
import { Claiming } from '../../../src/store/sqlite/claim.js';
import { type Database, loadDriver } from '../../../src/store/sqlite/driver.js';
import { EventLog } from '../../../src/store/sqlite/events.js';
import { HandBack } from '../../../src/store/sqlite/hand-back.js';
import { Inspecting } from '../../../src/store/sqlite/inspect.js';
import { Lanes } from '../../../src/store/sqlite/lanes.js';
import { Locks } from '../../../src/store/sqlite/lock.js';
import { NamedLocks } from '../../../src/store/sqlite/named-lock.js';
import { Peers } from '../../../src/store/sqlite/presence.js';
import { Probing } from '../../../src/store/sqlite/probe.js';
import { QueueTable } from '../../../src/store/sqlite/queue-state.js';
import { Removing } from '../../../src/store/sqlite/remove.js';
import { Retention } from '../../../src/store/sqlite/retention.js';
import { Selecting } from '../../../src/store/sqlite/select.js';
import { Sessions } from '../../../src/store/sqlite/session.js';
import { Settling } from '../../../src/store/sqlite/settle.js';
import { Writing } from '../../../src/store/sqlite/write.js';
import { afterwards, newFile, openStore } from './support.js';

/** How SQLite would carry out each statement of the engine. */
async function plans(): Promise<{ sql: string; plan: string }[]> {
  const file = newFile();
  await openStore({ path: file });
  const driver = await loadDriver();
  const db = driver.open(file);
  afterwards(() => db.close());
  const statements: string[] = [];
  const recorder: Database = {
    prepare(sql) {
      statements.push(sql.replace(/\s+/g, ' '));
      return db.prepare(sql);
    },
    exec: () => {},
    close: () => {},
    inTransaction: false,
  };
  const callers = new Callers(recorder);
  const lanes = new Lanes(recorder);
  const namedLocks = new NamedLocks(recorder);
  const retention = new Retention(recorder);
  const handBack = new HandBack(recorder, retention);
  const selecting = new Selecting(recorder);
  const claiming = new Claiming(recorder, callers, lanes);
  for (const Part of [Adding, EventLog, Inspecting, Writing]) new Part(recorder, callers);
  new QueueTable(recorder, lanes);
  new Settling(recorder, callers, claiming, retention);
  new Sessions(recorder, callers, handBack, namedLocks);
  const locks = new Locks(recorder, handBack);
  const removing = new Removing(recorder, selecting, retention);
  new Changing(recorder, { selecting, removing, locks });
  new Probing(recorder, new Peers(driver, file));
  return statements.map((sql) => {
    const values = Array.from(sql.matchAll(/\?/g), () => 0);
    const rows = db.prepare<[number, number, number, string]>(`EXPLAIN QUERY PLAN ${sql}`).all(...values);
    return { sql, plan: rows.map(([, , , detail]) => detail).join('; ') };
  });
}

describe('the statements of the SQLite store', () => {
  it('find jobs through an index, every one of them', async () => {
    const all = await plans();
    expect(all.length).toBeGreaterThan(60);
    expect(all.filter(({ plan }) => /SCAN (jobs|events|logs|revocations|queues|named|places)/.test(plan))).toEqual([]);
  });

  it('sort nothing but what one session holds, what is active, or a bounded number', async () => {
    const sorting = (await plans()).filter(({ plan }) => plan.includes('TEMP B-TREE'));
    const allowed = /state = 3|FROM sessions|ORDER BY job LIMIT/;
    expect(sorting.filter(({ sql }) => !allowed.test(sql))).toEqual([]);
  });

  it('claim in the order of an index, without sorting', async () => {
    const claim = (await plans()).filter(({ sql }) => sql.endsWith('state = 1 ORDER BY priority, ord LIMIT ? + 0'));
    expect(claim.map(({ plan }) => plan)).toEqual(['SEARCH jobs USING INDEX jobsWaiting (queue=?)']);
  });
});
