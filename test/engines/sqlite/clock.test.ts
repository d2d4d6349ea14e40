import { spawnSync } from 'node:child_process';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { startClock } from '../../../src/store/sqlite/state/clock.js';
import { loadDriver } from '../../../src/store/sqlite/driver/load.js';
import { ManualClock } from '../../../src/testing/manual-clock.js';
import { afterwards, newFile, newJob, newSession, openStore, StoreProcess } from './support.js';
import { paced } from '../../support/wait/pace.js';

/** The host is started again: another boot id. */
function reboot(file: string): void {
  const db = new Database(file);
  db.exec("UPDATE clock SET boot = 'before'");
  db.close();
}

describe("the SQLite store's clock", () => {
  it('is the same for all processes that open the file, whatever their wall clocks say', async () => {
    const file = newFile();
    const wallMs = Date.UTC(2030, 0, 1);
    const early = await openStore({ path: file, clock: new ManualClock({ monotonicMs: 5_000, wallMs }) });
    const skewed = await openStore({ path: file, clock: new ManualClock({ monotonicMs: 5_000, wallMs: wallMs - 3_600_000 }) });
    await early.openSession(newSession());
    const [session] = await skewed.sessions('q');
    expect(session?.expiresInMs).toBe(60_000);
    expect(session?.since).toBe(wallMs);
  });

  it('ends earlier owners at once after another boot, and does not go back', async () => {
    const file = newFile();
    const before = new ManualClock({ monotonicMs: 9_000_000 });
    const store = await openStore({ path: file, clock: before });
    await store.add('q', [newJob({ id: 'bound' }), newJob({ id: 'timed' })], { caller: 'p', seq: 1 });
    await store.openSession(newSession({ durationMs: 3_600_000 }));
    await store.claim('q', { session: 's', seq: 1, count: 1 });
    await store.claim('q', { session: 's', seq: 2, count: 1, timedMs: 3_600_000 });
    before.advance(500);
    await store.configure('q', { paused: true });
    await store.close();
    reboot(file);
    // The monotonic clock starts anew, and the wall clock was set back.
    const after = await openStore({ path: file, clock: new ManualClock({ monotonicMs: 1_000, wallMs: 5_000 }) });
    expect(await after.renew([{ queue: 'q', id: 'nobody', acked: 0 }])).toEqual([{ alive: false, notices: [] }]);
    const { stalled } = await after.sweep('q', 10);
    expect(stalled.sort()).toEqual(['bound', 'timed']);
    await after.openSession(newSession({ id: 'new' }));
    expect((await after.sessions('q'))[0]?.since).toBeGreaterThan(Date.UTC(2030, 0, 1) + 500);
  });

  it('keeps owners alive when the file is opened again in the same boot', async () => {
    const file = newFile();
    const clock = new ManualClock();
    const store = await openStore({ path: file, clock });
    await store.openSession(newSession());
    await store.close();
    const again = await openStore({ path: file, clock });
    expect(await again.renew([{ queue: 'q', id: 's', acked: 0 }])).toEqual([{ alive: true, notices: [] }]);
  });

  it('takes a monotonic clock that went back for another boot where boots have no id', async () => {
    const file = newFile();
    await (await openStore({ path: file, clock: new ManualClock() })).close();
    const db = (await loadDriver()).open(file);
    afterwards(() => db.close());
    const first = startClock(db, new ManualClock({ monotonicMs: 5_000_000 }), 'unknown');
    db.prepare("INSERT INTO queues (name, touchedAt) VALUES ('q', ?)").run(first.now());
    const later = startClock(db, new ManualClock({ monotonicMs: 5_001_000, wallMs: 0 }), 'unknown');
    expect(later.now()).toBe(first.now() + 1_000);
    const rebooted = startClock(db, new ManualClock({ monotonicMs: 1_000, wallMs: 0 }), 'unknown');
    expect(rebooted.now()).toBe(first.now() + 1);
  });

  it('never lets anything end early by rounding', async () => {
    const clock = new ManualClock();
    const store = await openStore({ path: newFile(), clock });
    clock.advance(0.7);
    await store.add('q', [newJob({ delayMs: 10 })], { caller: 'p', seq: 1 });
    await store.openSession(newSession({ durationMs: 10 }));
    clock.advance(9.9);
    expect((await store.claim('q', { session: 's', seq: 1, count: 1 })).jobs).toEqual([]);
    expect((await store.sweep('q', 1)).stalled).toEqual([]);
    expect((await store.sessions('q'))[0]?.expiresInMs).toBeGreaterThan(0);
  });

  describe('the SQLite store clock in a time namespace', () => {
    const AHEAD = 100_000;
    const namespaced = ['unshare', '--time', '--monotonic', String(AHEAD / 1000), '--fork', '--kill-child'];
    const canUnshare = spawnSync(namespaced[0] as string, [...namespaced.slice(1), 'true']).status === 0;

    it.skipIf(!canUnshare)(
      `is the host's, so that no process sees the sessions of others expire early${canUnshare ? '' : ' (unshare --time is not allowed here)'}`,
      { timeout: paced(30_000) },
      async () => {
        for (const outsideFirst of [true, false]) {
          const file = newFile();
          if (outsideFirst) await (await openStore({ path: file })).close();
          const inside = await StoreProcess.start(file, namespaced);
          await inside.call('open');
          const outside = await openStore({ path: file });
          await outside.openSession(newSession({ id: 'outside', durationMs: 60_000 }));
          await inside.call('openSession', newSession({ id: 'inside', durationMs: 60_000 }));
          const seen = [...(await outside.sessions('q')), ...(await inside.call<{ expiresInMs: number }[]>('sessions', 'q'))];
          expect(seen).toHaveLength(4);
          for (const { expiresInMs } of seen) {
            expect(expiresInMs).toBeGreaterThan(30_000);
            expect(expiresInMs).toBeLessThanOrEqual(60_000);
          }
          await inside.end();
        }
      },
    );

    it('subtracts the offset of the namespace, and refuses a file that was written with it', async () => {
      const file = newFile();
      await (await openStore({ path: file, clock: new ManualClock() })).close();
      const db = (await loadDriver()).open(file);
      afterwards(() => db.close());
      const wallMs = Date.UTC(2031, 0, 1);
      const outside = new ManualClock({ monotonicMs: 5_000, wallMs });
      const inside = new ManualClock({ monotonicMs: 5_000 + AHEAD, wallMs });
      const first = startClock(db, outside, 'this boot', 0);
      expect(startClock(db, inside, 'this boot', AHEAD).now()).toBe(first.now());
      const created = startClock(db, inside, 'next boot', AHEAD);
      expect(startClock(db, outside, 'next boot', 0).now()).toBe(created.now());
      // A version that knew nothing of namespaces ran inside.
      startClock(db, inside, 'another boot', 0);
      expect(() => startClock(db, inside, 'another boot', AHEAD)).toThrow(expect.objectContaining({ code: 'STORE_UNSUPPORTED' }));
    });
  });
});
