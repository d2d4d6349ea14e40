import { describe, expect, it } from 'vitest';
import { Adding } from '../../../src/store/sqlite/add.js';
import { Callers } from '../../../src/store/sqlite/state/callers.js';
import { Changing } from '../../../src/store/sqlite/change.js';
import { Claiming } from '../../../src/store/sqlite/claim.js';
import { type Database, loadDriver } from '../../../src/store/sqlite/driver/load.js';
import { Entering } from '../../../src/store/sqlite/state/enter.js';
import { Entries } from '../../../src/store/sqlite/state/entries.js';
import { EventLog } from '../../../src/store/sqlite/events.js';
import { Failing } from '../../../src/store/sqlite/state/fail.js';
import { Inspecting } from '../../../src/store/sqlite/inspect.js';
import { Groups } from '../../../src/store/sqlite/state/groups.js';
import { KeyGroups } from '../../../src/store/sqlite/state/key-groups.js';
import { Leaving } from '../../../src/store/sqlite/leave.js';
import { Locks } from '../../../src/store/sqlite/lock.js';
import { LostGroups } from '../../../src/store/sqlite/state/lost-groups.js';
import { LostLinks } from '../../../src/store/sqlite/state/lost-links.js';
import { MinuteCounts } from '../../../src/store/sqlite/state/minute-counts.js';
import { NamedLocks } from '../../../src/store/sqlite/named-lock.js';
import { Peers } from '../../../src/store/sqlite/liveness/presence.js';
import { Probing } from '../../../src/store/sqlite/probe.js';
import { QueueTable } from '../../../src/store/sqlite/state/queue-state.js';
import { Retention } from '../../../src/store/sqlite/retention.js';
import { Rules } from '../../../src/store/sqlite/state/rules.js';
import { Scheduling } from '../../../src/store/sqlite/schedule.js';
import { Schedules } from '../../../src/store/sqlite/state/schedules.js';
import { Selecting } from '../../../src/store/sqlite/select.js';
import { Sessions } from '../../../src/store/sqlite/session.js';
import { Settling } from '../../../src/store/sqlite/settle.js';
import { Steps } from '../../../src/store/sqlite/state/steps.js';
import { Sweeping } from '../../../src/store/sqlite/sweep.js';
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
  const keyGroups = new KeyGroups(recorder);
  const groups = new Groups(recorder, new Rules(recorder));
  const namedLocks = new NamedLocks(recorder);
  const entries = new Entries(recorder);
  const entering = new Entering(recorder, groups);
  const schedules = new Schedules(recorder, () => 0);
  const steps = new Steps(recorder);
  const leaving = new Leaving(recorder, { entries, entering, schedules, steps });
  const retention = new Retention(recorder, leaving);
  const failing = new Failing(recorder, leaving, retention);
  const selecting = new Selecting(recorder);
  const claiming = new Claiming(recorder, { callers, keyGroups, groups, leaving, schedules });
  new EventLog(recorder);
  new Writing(recorder, leaving, steps);
  new Adding(recorder, { callers, entering, entries, leaving });
  const minutes = new MinuteCounts(recorder);
  new Inspecting(recorder, { entries, schedules, minutes, groups, steps });
  new QueueTable(recorder, { keyGroups, groups, minutes });
  new Settling(recorder, callers, claiming, { leaving, retention, steps, failing });
  const locks = new Locks(recorder, leaving, failing);
  const sessions = new Sessions(recorder, { callers, locks, namedLocks });
  const lostGroups = new LostGroups(recorder, groups);
  const lostLinks = new LostLinks(recorder, leaving.families);
  new Sweeping(recorder, { callers, sessions, locks, namedLocks, entries, schedules, lostGroups, lostLinks });
  new Changing(recorder, { selecting, leaving, locks, steps, failing });
  new Probing(recorder, new Peers(driver, file), schedules);
  new Scheduling(recorder, schedules, entering, leaving);
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
