// Rule 3 away from renewals: trust, and being heard, count from the moment before the first send. Neither the moment of the reply counts nor
// that of a later try, because the store may have done its work when the first request reached it. In each test replies are lost or late,
// and the lock must end when it would have ended had the first reply come at once.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Job } from '../../src/handle/job.js';
import { Leader } from '../../src/lock/leader.js';
import type { NamedLock } from '../../src/lock/named-lock.js';
import { Session } from '../../src/session/session.js';
import { Queue } from '../../src/queue/queue.js';
import { systemClock } from '../../src/runtime/clock.js';
import type { SessionCheck, SessionRef } from '../../src/store/contract/index.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { FaultyStore, type StoreVerb } from '../../src/testing/faulty-store.js';
import { Worker } from '../../src/worker/worker.js';
import { takeProcessTime, type ProcessTime } from '../support/wait/time.js';

vi.mock('../../src/runtime/timers.js', () => import('../support/wait/process-timers.js'));

/** Of the time that passes here; also what a moment may be off by. */
const STEP_MS = 10;
const LATE_MS = 400;
/** For sessions whose owner must know that no worker takes it for dead. */
const GRACE_MS = 2000;
const CONFIRMED_MS = GRACE_MS - 100;

/** Its hints look at connections, as those of a server. */
class Server extends MemoryStore {
  override readonly capabilities = { ...new MemoryStore().capabilities, crashHints: true, fallibleHints: true };
  override async checkSessions(sessions: SessionRef[]): Promise<SessionCheck[]> {
    return sessions.map(() => ({ unsuspected: true, noticed: false }));
  }
}

let time: ProcessTime;
let store: FaultyStore;
let opened: { close(): Promise<unknown> }[];

beforeEach(() => {
  time = takeProcessTime();
  store = new FaultyStore(new Server());
  opened = [];
});

afterEach(async () => {
  store.clear();
  await time.until(Promise.all(opened.map((each) => each.close())));
  vi.useRealTimers();
});

/** The reply of the next call comes late. */
function slow(verb: StoreVerb, ms = LATE_MS): void {
  const rule = store.on(verb, { fault: 'hold-reply', times: 1 });
  setTimeout(() => rule.remove(), ms);
}

/** The store carries out the next call twice: the first reply is lost, the second one comes late. */
function repeat(verb: StoreVerb): void {
  const late = store.on(verb, { fault: 'hold-reply', times: 1 });
  store.on(verb, { fault: 'drop-reply', times: 1 });
  setTimeout(() => late.remove(), LATE_MS);
}

/** When the next call of a verb leaves. */
async function sent(verb: StoreVerb): Promise<number> {
  await store.called(verb);
  return systemClock.monotonic();
}

/** It is true up to `ms` after `since`, and no longer. */
async function endsAt(since: number, ms: number, isTrue: () => boolean): Promise<void> {
  const left = since + ms - systemClock.monotonic();
  await time.pass(left - 2 * STEP_MS);
  expect(isTrue()).toBe(true);
  await time.pass(3 * STEP_MS);
  expect(isTrue()).toBe(false);
}

function newQueue(options = {}): Queue {
  const queue = new Queue('mail', { connection: store, ...options });
  queue.on('error', () => undefined);
  opened.push(queue);
  return queue;
}

function newWorker(processor: (job: Job) => unknown, options = {}): void {
  const worker = new Worker('mail', processor, { connection: store, ...options });
  worker.on('error', () => undefined);
  opened.push(worker);
}

/** The next job that a worker runs; its handler ends with the test. */
function running(options = {}): Promise<Job> {
  return new Promise((resolve) => {
    newWorker(
      (job) => {
        resolve(job);
        return new Promise((end) => void opened.unshift({ close: async () => end(undefined) }));
      },
      { skipStalledCheck: true, ...options },
    );
  });
}

async function waiting(queue: Queue): Promise<Job> {
  const { id } = await time.until(queue.add('welcome', {}));
  return (await time.until(queue.getJob(id))) as Job;
}

describe('a new session', () => {
  const settings = { queue: 'mail', name: 'n', durationMs: 10_000, maxStalls: 1, graceMs: GRACE_MS };

  test('is trusted from before its request was sent', async () => {
    slow('openSession');
    const sentAt = systemClock.monotonic();
    const session = await time.until(Session.open(store, settings, systemClock));
    await endsAt(sentAt, 9500, () => session.trustedForMs() > 0);
  });

  test('counts as confirmed from before its request was sent', async () => {
    slow('openSession');
    const sentAt = systemClock.monotonic();
    const session = await time.until(Session.open(store, settings, systemClock));
    await endsAt(sentAt, CONFIRMED_MS, () => session.isConfirmed);
  });
});

describe('a timed claim that is repeated', () => {
  test('is trusted from before its first try when taken by hand', async () => {
    const job = await waiting(newQueue({ lockDuration: 1000 }));
    await time.until(Promise.resolve(job.takeLock()).then(() => job.releaseLock()));
    repeat('claim');
    const sentAt = systemClock.monotonic();
    await time.until(job.takeLock());
    await endsAt(sentAt, 950, () => job.lock.held);
  });

  test('is trusted from before its first try, in a worker that does not renew', async () => {
    const queue = newQueue();
    const ran = running({ lockDuration: 1000, skipLockRenewal: true, drainDelay: 60 });
    await time.pass(100);
    repeat('claim');
    const asked = sent('claim');
    await time.until(queue.add('welcome', {}));
    const { lock } = await time.until(ran);
    await endsAt(await asked, 950, () => lock.held);
  });
});

describe('an extension of a lock', () => {
  async function taken(lockDuration: number): Promise<Job> {
    const job = await waiting(newQueue({ lockDuration }));
    await time.until(job.takeLock());
    return job;
  }

  test('counts from before its request was sent', async () => {
    const job = await taken(10_000);
    slow('extend');
    const sentAt = systemClock.monotonic();
    expect(await time.until(job.extendLock(20_000))).toBe(1);
    await endsAt(sentAt, 19_000, () => job.lock.held);
  });

  test('prolongs nothing before its reply', async () => {
    const asked = sent('claim');
    const job = await taken(1000);
    store.on('extend', { fault: 'hold-reply' });
    void job.extendLock(20_000);
    await endsAt(await asked, 950, () => job.lock.held);
  });

  test('that shortens the lock counts before its reply, and its owner learns of the end in time', async () => {
    const job = await taken(60_000);
    const { signal } = job.lock;
    store.on('extend', { fault: 'hold-reply' });
    const sentAt = systemClock.monotonic();
    void job.extendLock(1000);
    await endsAt(sentAt, 950, () => !signal.aborted);
    expect(job.lock.held).toBe(false);
  });
});

describe('a session counts as confirmed', () => {
  test('from before the first try of a claim', async () => {
    const queue = newQueue();
    const ran = running({ lockDuration: 60_000, crashGraceMs: GRACE_MS, drainDelay: 60 });
    // Its session was heard of long ago.
    await time.pass(5000);
    store.on('checkSessions', { fault: 'fail' });
    repeat('claim');
    const asked = sent('claim');
    await time.until(queue.add('welcome', {}));
    const { lock } = await time.until(ran);
    await endsAt(await asked, CONFIRMED_MS, () => lock.held);
  });

  test('only if the claim returns a job', async () => {
    const queue = newQueue();
    const ran = running({ lockDuration: 60_000, crashGraceMs: GRACE_MS, drainDelay: 1, concurrency: 2 });
    await time.pass(100);
    store.on('checkSessions', { fault: 'fail' });
    const asked = sent('claim');
    await time.until(queue.add('welcome', {}));
    const { lock } = await time.until(ran);
    const claims = store.calls('claim');
    await endsAt(await asked, CONFIRMED_MS, () => lock.held);
    expect(store.calls('claim')).toBeGreaterThan(claims);
  });

  test('from before the request for a named lock', async () => {
    const queue = newQueue({ lockDuration: 60_000, crashGraceMs: GRACE_MS });
    const take = async (name: string): Promise<NamedLock> => (await queue.takeLock(name)) as NamedLock;
    const first = await time.until(take('first'));
    await time.pass(5000);
    store.on('checkSessions', { fault: 'fail' });
    await time.pass(5000);
    expect(first.isSure).toBe(false);
    slow('acquire');
    const asked = sent('acquire');
    const second = await time.until(take('second'));
    await endsAt(await asked, CONFIRMED_MS, () => second.held);
  });

  test('only if the lock is granted, after a place in line', async () => {
    const [queue, other] = [newQueue({ lockDuration: 60_000, crashGraceMs: GRACE_MS }), newQueue()];
    await time.until(other.takeLock('taken'));
    store.on('checkSessions', { fault: 'fail' });
    const asked = sent('acquire');
    const lock = (await time.until(queue.takeLock('own'))) as NamedLock;
    const asks = store.calls('acquire');
    const stop = new AbortController();
    const lined = queue.takeLock('taken', { waitMs: 60_000, signal: stop.signal }).catch(() => undefined);
    await endsAt(await asked, CONFIRMED_MS, () => lock.held);
    expect(store.calls('acquire')).toBeGreaterThan(asks + 1);
    stop.abort();
    await time.until(lined);
  });

  test('from before the request of a renewal', async () => {
    const ran = running({ lockDuration: 10_000, lockRenewTime: 5000, crashGraceMs: GRACE_MS, drainDelay: 60 });
    const queue = newQueue();
    await time.until(queue.add('welcome', {}));
    const { lock } = await time.until(ran);
    store.on('checkSessions', { fault: 'fail' });
    slow('renew', 10_000);
    const sentAt = await time.until(sent('renew'));
    store.on('renew', { fault: 'fail' });
    await time.pass(LATE_MS);
    store.release('renew');
    await endsAt(sentAt, CONFIRMED_MS, () => lock.held);
  });
});

describe('a leader that is unsure', () => {
  test('stops leading a grace after its last request was sent, and leads again when the store replies in time', async () => {
    const leader = new Leader('mail', { connection: store, leaderTimeout: 60_000, crashGraceMs: GRACE_MS });
    opened.push(leader);
    leader.on('error', () => undefined);
    store.on('checkSessions', { fault: 'fail' });
    slow('acquire');
    const asked = sent('acquire');
    await time.until(leader.waitUntilReady());
    const { term } = leader;
    expect(term).toEqual(expect.any(Number));
    await endsAt(await asked, CONFIRMED_MS, () => leader.isLeader);
    expect([leader.term, leader.signal.aborted]).toEqual([undefined, true]);
    store.clear();
    await time.pass(GRACE_MS);
    expect([leader.isLeader, leader.term]).toEqual([true, term]);
  });
});

test('releases a named lock that arrives too late to be trusted, and requests it again', async () => {
  const queue = newQueue({ lockDuration: 1000 });
  // Nothing renews the session until its lock is here, and that takes longer than the session is trusted.
  const outage = store.on('renew', { fault: 'fail' });
  slow('acquire', 1200);
  const taking = queue.takeLock('late', { waitMs: 60_000 });
  await time.pass(1190);
  outage.remove();
  const lock = (await time.until(taking)) as NamedLock;
  expect(lock.held).toBe(true);
  expect(store.calls('letGo')).toBeGreaterThan(0);
  expect((await queue.getNamedLock('late'))?.fence).toBe(lock.fence);
});

test('does not trust a named lock whose release is in flight', async () => {
  const lock = (await time.until(newQueue().takeLock('given back'))) as NamedLock;
  expect(lock.held).toBe(true);
  store.on('letGo', { fault: 'hold-reply' });
  void lock.release();
  expect(lock.held).toBe(false);
  await time.pass(50);
  expect([lock.held, lock.isSure]).toEqual([false, false]);
});
