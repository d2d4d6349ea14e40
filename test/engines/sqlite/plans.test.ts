import { describe, expect, it } from 'vitest';
import { type Database, loadDriver } from '../../../src/store/sqlite/driver/load.js';
import { Peers } from '../../../src/store/sqlite/liveness/presence.js';
import { Parts } from '../../../src/store/sqlite/state/parts.js';
import { startClock } from '../../../src/store/sqlite/state/clock.js';
import { systemClock } from '../../../src/runtime/clock.js';
import { Probing } from '../../../src/store/sqlite/probe.js';
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
  const { schedules } = new Parts(recorder, startClock(db, systemClock));
  new Probing(recorder, new Peers(driver, file), schedules);
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
    expect(
      all.filter(({ plan }) =>
        /SCAN (jobs|steps|links|families|dedup|metrics|groups|turns|schedules|events|logs|revocations|queues|named|places)/.test(
          plan,
        ),
      ),
    ).toEqual([]);
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

  it('find owing schedules without reading the others', async () => {
    const owing = (await plans()).filter(({ sql }) => sql.startsWith('SELECT') && sql.includes("state = 'owing'"));
    expect(owing.map(({ plan }) => plan.includes('schedulesOwing') && !plan.includes('PRIMARY KEY (queue=?)'))).toEqual([
      true,
      true,
    ]);
  });
});
