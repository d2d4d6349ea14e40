import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { HoldfastError } from '../../src/errors.js';
import { Session } from '../../src/session/session.js';
import { trustUntil } from '../../src/session/trust.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { Health } from '../../src/worker/health.js';
import type { WorkerState } from '../../src/worker/lifecycle.js';
import { Slots } from '../../src/worker/slots.js';
import type { Worker } from '../../src/worker/worker.js';
import { scene } from '../support/scenes/faulty-scene.js';
import { takeProcessTime, takeTime, type Time } from '../support/wait/time.js';
import { until } from '../support/wait/until.js';
import { newGate } from '../support/wait/gate.js';

vi.mock('../../src/runtime/timers.js', () => import('../support/wait/process-timers.js'));

describe('worker health', () => {
  const IDLE_MS = 5000;
  const RENEW_MS = 15_000;
  let time: Time;
  let health: Health;
  let slots: Slots;
  let state: WorkerState;
  let overdueMs: number;
  let session: Session | undefined;

  beforeEach(async () => {
    time = takeTime();
    slots = new Slots(2);
    state = 'running';
    const settings = { queue: 'q', name: 'n', durationMs: 2 * RENEW_MS, maxStalls: 1 };
    session = await Session.open(new MemoryStore({ clock: time.clock }), settings, time.clock);
    overdueMs = 0;
    health = healthWith(RENEW_MS);
  });

  afterEach(() => {
    health.stop();
    vi.useRealTimers();
  });

  function healthWith(renewMs: number): Health {
    const { clock } = time;
    return new Health({
      queue: 'q',
      clock,
      slots,
      prefetched: () => 0,
      idleMs: IDLE_MS,
      renewMs,
      session: () => session,
      state: () => state,
      overdueMs: () => overdueMs,
      refusal: () => undefined,
    });
  }

  function codes(): string[] {
    const { healthy, reasons } = health.report();
    expect(healthy).toBe(reasons.length === 0);
    expect(health.isHealthy()).toBe(healthy);
    return reasons.map((reason) => reason.split(':')[0] ?? '');
  }

  function renew(): void {
    session?.memory.extendTrust(trustUntil(time.clock.monotonic() | 0, 2 * RENEW_MS));
  }

  /** Time passes, and the store answers a claim every second. */
  async function claimsFor(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 1000) {
      health.asked();
      health.answered(true);
      renew();
      await time.pass(Math.min(left, 1000));
    }
  }

  test('is STARTING before the first reply of the store, and healthy after it', async () => {
    expect(codes()).toEqual(['STARTING']);
    health.asked();
    expect(codes()).toEqual(['STARTING']);
    health.answered(true);
    expect(codes()).toEqual([]);
    await claimsFor(60_000);
    expect(codes()).toEqual([]);
    expect(health.report()).toMatchObject({
      running: 0,
      slots: 2,
      storeOutageMs: 0,
      blockedMs: 0,
      paused: false,
      closing: false,
    });
    expect(health.report().lastClaimMs).toBe(1000);
  });

  test('is STORE_SILENT when a call has had no reply for three seconds, until it has', async () => {
    await claimsFor(1000);
    health.asked();
    await time.pass(2900);
    expect(codes()).toEqual([]);
    await time.pass(200);
    expect(codes()).toEqual(['STORE_SILENT']);
    expect(health.report().storeOutageMs).toBe(3100);
    health.answered(true);
    expect(codes()).toEqual([]);
  });

  test('names the error of calls that fail for three seconds, not before', async () => {
    await claimsFor(1000);
    health.asked();
    health.failed(new HoldfastError('STORE_UNAVAILABLE', 'Nobody is there.', { retryable: true }));
    expect(codes()).toEqual([]);
    await time.pass(3100);
    expect(codes()).toEqual(['STORE_UNAVAILABLE']);
    expect(health.report().reasons[0]).toContain('Nobody is there.');
  });

  test('names an error at once that is not retryable', async () => {
    await claimsFor(1000);
    health.asked();
    health.failed(new HoldfastError('STORE_DENIED', 'Wrong password.'));
    expect(codes()).toEqual(['STORE_DENIED']);
  });

  test('expects no claim while all slots are busy', async () => {
    await claimsFor(1000);
    slots.inHand = 2;
    for (let minutes = 0; minutes < 5; minutes += 1) {
      renew();
      await time.pass(RENEW_MS);
      expect(codes()).toEqual([]);
    }
    expect(health.report().lastClaimMs).toBeGreaterThan(60_000);
    // A slot that is free since just now is no reason, one that stays so is.
    slots.inHand = 1;
    expect(codes()).toEqual([]);
    renew();
    await time.pass(IDLE_MS + 2000);
    expect(codes()).toEqual([]);
    await time.pass(2000);
    expect(codes()).toEqual(['CLAIM_OVERDUE']);
  });

  test('expects no claim of a paused worker, or of one without a processor', async () => {
    await claimsFor(1000);
    for (const phase of ['paused', 'by hand'] as const) {
      state = phase;
      renew();
      await time.pass(2 * IDLE_MS);
      expect(codes()).toEqual([]);
      expect(health.report().paused).toBe(phase === 'paused');
    }
  });

  test('is OUTCOME_OVERDUE while jobs are given up whose outcomes are stuck, also if other calls get replies', async () => {
    health.asked();
    health.answered(true);
    overdueMs = 40_000;
    expect(codes()).toEqual(['OUTCOME_OVERDUE']);
    overdueMs = 0;
    expect(codes()).toEqual([]);
  });

  test('is SESSION_GONE when the store has ended the session and no call replaces it', async () => {
    await claimsFor(1000);
    slots.inHand = 2;
    session = undefined;
    await time.pass(2500);
    expect(codes()).toEqual([]);
    await time.pass(1000);
    expect(codes()).toEqual(['SESSION_GONE']);
  });

  test('is RENEWAL_OVERDUE without renewals, before and after trust is lost', async () => {
    await claimsFor(1000);
    slots.inHand = 2;
    renew();
    await time.pass(RENEW_MS + 2900);
    expect(codes()).toEqual([]);
    await time.pass(200);
    expect(codes()).toEqual(['RENEWAL_OVERDUE']);
    expect(health.report().lastRenewalMs).toBe(RENEW_MS + 3100);
    renew();
    expect(codes()).toEqual([]);
    session?.memory.markLost();
    expect(codes()).toEqual(['RENEWAL_OVERDUE']);
  });

  test('is never RENEWAL_OVERDUE where nothing is renewed', async () => {
    health = healthWith(0);
    await claimsFor(1000);
    slots.inHand = 2;
    await time.pass(4 * RENEW_MS);
    expect(codes()).toEqual([]);
    expect(health.report()).not.toHaveProperty('lastRenewalMs');
  });

  test('reports the time of a blocked loop, and does not count it as an outage', async () => {
    await claimsFor(1000);
    health.asked();
    renew();
    time.clock.advance(20_000);
    renew();
    expect(codes()).toEqual([]);
    expect(health.report().blockedMs).toBeGreaterThanOrEqual(20_000);
    await time.pass(3100);
    expect(codes()).toEqual(['STORE_SILENT']);
    health.answered(true);
    await claimsFor(61_000);
    expect(health.report().blockedMs).toBe(0);
  });

  test('is not healthy before run and after close', () => {
    state = 'idle';
    expect(codes()).toEqual(['NOT_STARTED']);
    state = 'closing';
    expect(codes()).toEqual(['CLOSED']);
    expect(health.report().closing).toBe(true);
  });

  test('shows what renews the locks, and when the last wake-up came', async () => {
    expect(health.report().lockThread).toBe('starting');
    health.threaded(true);
    expect(health.report().lockThread).toBe('thread');
    health.threaded(false);
    expect(health.report().lockThread).toBe('loop');
    expect(health.report()).not.toHaveProperty('lastWakeUpMs');
    await claimsFor(1000);
    health.woken();
    await time.pass(500);
    expect(health.report().lastWakeUpMs).toBe(500);
  });
});

describe('a worker', () => {
  const options = { lockDuration: 1000, lockRenewTime: 200, drainDelay: 1 };
  const unhealthy = (worker: Worker, code: string) =>
    until(`${code}, not ${JSON.stringify(worker.health())}`, () =>
      worker.health().reasons.some((reason) => reason.startsWith(code)),
    );

  test('is starting, then healthy, also while its only slot is busy for long; not when it is closed', async () => {
    const { worker: make, add } = await scene('memory');
    const busy = newGate();
    const { worker } = make(() => busy.opened, { ...options, autorun: false });
    expect(worker.health().reasons).toEqual([expect.stringContaining('NOT_STARTED')]);
    await add();
    const active = new Promise((resolve) => worker.once('active', resolve));
    void worker.run();
    expect(worker.isHealthy()).toBe(false);
    await active;
    expect(worker.health()).toMatchObject({ healthy: true, reasons: [], running: 1, slots: 1, lockThread: 'loop' });
    busy.open();
    await worker.close();
    expect(worker.health()).toMatchObject({ healthy: false, closing: true });
  });

  test.each(['hang', 'fail'] as const)(
    'is unhealthy within seconds when its claims %s, and healthy after a reply',
    async (fault) => {
      const { worker: make, store } = await scene('memory');
      onTestFinished(() => void vi.useRealTimers());
      const time = takeProcessTime();
      const { worker } = make(() => undefined, options);
      await time.until(until('healthy', () => worker.isHealthy()));
      const rule = store.on('claim', { fault });
      await time.until(unhealthy(worker, fault === 'fail' ? 'STORE_UNAVAILABLE' : 'TIMEOUT'));
      expect(worker.health().storeOutageMs).toBeGreaterThanOrEqual(3000);
      rule.remove();
      await time.until(until('healthy again', () => worker.isHealthy()));
    },
  );

  test('is unhealthy when its renewals fail and its locks are no longer trusted', async () => {
    const { worker: make, store } = await scene('memory');
    const { worker } = make(() => undefined, { ...options, skipStalledCheck: true });
    await until('healthy', () => worker.isHealthy());
    const rule = store.on('renew', { fault: 'fail' });
    await unhealthy(worker, 'RENEWAL_OVERDUE');
    rule.remove();
    await until('healthy again', () => worker.isHealthy());
  });
});
