// What the conformance suite cannot see of the memory store: that nothing inside is shared with the outside, what it does with calls that
// nobody should make, and that whatever is done to it, every job is in exactly one place.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ClaimedJob } from '../../../src/job/record.js';
import type { Outcome } from '../../../src/job/outcome.js';
import type { ListName, NewSession } from '../../../src/store/contract/index.js';
import { MemoryStore } from '../../../src/store/memory/index.js';
import { newJob as plain } from '../../unit/store-samples.js';
import { retryFrom } from '../../../src/testing/conformance/samples.js';
import { seedOfTest } from '../../support/run/seed.js';

const QUEUE = 'q';
const LISTS: ListName[] = ['waiting', 'prioritized', 'delayed', 'active', 'completed', 'failed'];

/** Time in the test's hand: both clocks start at `at`. */
class Hand {
  at = 1_000;
  readonly clock = { monotonic: () => this.at, wall: () => 1_700_000_000_000 + this.at };
}

function open(): { store: MemoryStore; hand: Hand } {
  const hand = new Hand();
  return { store: new MemoryStore({ clock: hand.clock }), hand };
}

const session = (id: string, difference: Partial<NewSession> = {}): NewSession => ({
  queue: QUEUE,
  id,
  owner: { host: 'h', pid: 1, name: 'n', instance: 'i' },
  durationMs: 1_000,
  maxStalls: 1,
  slots: 1,
  ...difference,
});

async function ids(store: MemoryStore, list: ListName): Promise<string[]> {
  return (await store.jobs(QUEUE, { lists: [list], start: 0, end: -1, asc: true })).jobs.map(({ id }) => id);
}

describe('the memory store shares no object with its caller', () => {
  test('so arguments may be changed after the call', async () => {
    const { store } = open();
    const job = plain({ id: 'a' });
    const jobs = [job];
    const opened = session('s');
    await store.add(QUEUE, jobs, { caller: 'p', seq: 1 });
    await store.openSession(opened);
    Object.assign(job, { data: '"changed"', priority: 9 });
    jobs.push(plain());
    Object.assign(opened.owner, { host: 'changed' });
    expect((await store.jobs(QUEUE, ['a'])).jobs).toMatchObject([{ data: '{}', priority: 0 }]);
    expect((await store.status(QUEUE)).counts).toMatchObject({ waiting: 1, prioritized: 0 });
    expect(await store.sessions(QUEUE)).toMatchObject([{ owner: { host: 'h' } }]);
  });

  test('so replies may be changed', async () => {
    const { store } = open();
    await store.openSession(session('s'));
    const call = { caller: 'p', seq: 1 };
    const added = await store.add(QUEUE, [plain({ id: 'a' }), plain({ id: 'b' })], call);
    const { jobs } = await store.claim(QUEUE, { session: 's', seq: 1, count: 2 });
    await store.write(QUEUE, [{ jobId: 'a', kind: 'log', row: 'row' }]);
    await store.change(QUEUE, ['b'], { kind: 'revoke', reason: 'reason' });
    const gone: Outcome = { kind: 'release', jobId: 'gone', token: 't' };
    const seen = async (): Promise<unknown[]> => [
      (await store.jobs(QUEUE, ['a', 'b'])).jobs,
      await store.claim(QUEUE, { session: 's', seq: 1, count: 2 }),
      await store.add(QUEUE, [plain({ id: 'a' }), plain({ id: 'b' })], call),
      await store.settle(QUEUE, [gone], { caller: 's', seq: 2 }),
      await store.renew([{ queue: QUEUE, id: 's', acked: 0 }]),
      await store.logs(QUEUE, 'a', { start: 0, end: -1, asc: true }),
      await store.logs(QUEUE, 'a', { start: 0, end: -1, asc: false }),
      (await store.locks(QUEUE, { jobIds: ['a'] }))[0],
      await store.locks(QUEUE, { session: 's' }),
      (await store.jobs(QUEUE, { lists: LISTS, start: 0, end: -1, asc: true })).jobs,
      await store.status(QUEUE),
      await store.events(QUEUE, 0, 100),
    ];
    const before = JSON.stringify(await seen());
    spoil([added, jobs, ...(await seen())]);
    expect(JSON.stringify(await seen())).toBe(before);
  });

  /** Overwrites everything that can be reached. */
  function spoil(value: unknown): void {
    if (typeof value !== 'object' || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      spoil(inner);
      (value as Record<string, unknown>)[key] = 'spoilt';
    }
    if (Array.isArray(value)) value.length = 0;
  }
});

describe('the memory store and wrong calls', () => {
  test('neither adds nor claims for a call with an old number', async () => {
    const { store } = open();
    await store.openSession(session('s'));
    await store.add(QUEUE, [plain()], { caller: 'p', seq: 2 });
    await expect(store.add(QUEUE, [plain()], { caller: 'p', seq: 1 })).rejects.toMatchObject({ code: 'STORE_FAILED' });
    await store.settle(QUEUE, [{ kind: 'release', jobId: 'none', token: 't' }], { caller: 's', seq: 4 });
    expect(await store.claim(QUEUE, { session: 's', seq: 3, count: 1 })).toMatchObject({ jobs: [], sessionAlive: true });
    expect((await store.claim(QUEUE, { session: 's', seq: 5, count: 1 })).jobs).toHaveLength(1);
  });

  test('skips a counted id that a user has taken', async () => {
    const { store } = open();
    const replies = await store.add(QUEUE, [plain({ id: '2' }), plain(), plain(), plain()], { caller: 'p', seq: 1 });
    expect(replies.map(({ id }) => id)).toEqual(['2', '1', '3', '4']);
    expect(replies.every(({ status }) => status === 'added')).toBe(true);
  });

  test('refuses to open a session that is open or still holds locks', async () => {
    const { store, hand } = open();
    await store.openSession(session('s'));
    await expect(store.openSession(session('s'))).rejects.toMatchObject({ code: 'STORE_FAILED' });
    await store.add(QUEUE, [plain()], { caller: 'p', seq: 1 });
    await store.claim(QUEUE, { session: 's', seq: 1, count: 1, timedMs: 5_000 });
    hand.at += 2_000;
    await store.sweep(QUEUE, 10);
    expect(await store.sessions(QUEUE)).toEqual([]);
    await expect(store.openSession(session('s'))).rejects.toMatchObject({ code: 'STORE_FAILED' });
  });

  test('rejects every verb after close, and wakes no watcher', async () => {
    const { store } = open();
    let woken = 0;
    store.watch(QUEUE, () => woken++);
    await store.add(QUEUE, [plain()], { caller: 'p', seq: 1 });
    woken = 0;
    const adding = store.add(QUEUE, [plain()], { caller: 'p', seq: 2 });
    await store.close();
    await store.close();
    await adding;
    const calls: (() => Promise<unknown>)[] = [
      () => store.open(),
      () => store.add(QUEUE, [], { caller: 'p', seq: 3 }),
      () => store.claim(QUEUE, { session: 's', seq: 1, count: 1 }),
      () => store.settle(QUEUE, []),
      () => store.openSession(session('s')),
      () => store.renew([]),
      () => store.closeSessions([], 'closed'),
      () => store.sweep(QUEUE, 1),
      () => store.probe(QUEUE),
      () => store.extend(QUEUE, []),
      () => store.configure(QUEUE, { paused: true }),
      () => store.configure(QUEUE, { blockedMs: 1 }),
      () => store.write(QUEUE, []),
      () => store.change(QUEUE, [], { kind: 'remove' }),
      () => store.change(QUEUE, { lists: [], limit: 1 }, { kind: 'remove' }),
      () => store.forget(QUEUE, { all: true }),
      () => store.forget(QUEUE, { events: 1 }),
      () => store.queues(1),
      () => store.jobs(QUEUE, []),
      () => store.jobs(QUEUE, { lists: [], start: 0, end: -1, asc: true }),
      () => store.status(QUEUE),
      () => store.logs(QUEUE, 'a', { start: 0, end: -1, asc: true }),
      () => store.events(QUEUE, 0, 1),
      () => store.locks(QUEUE, { jobIds: ['a'] }),
      () => store.sessions(QUEUE),
      () => store.locks(QUEUE, { session: 's' }),
      async () => store.watch(QUEUE, () => {}),
    ];
    for (const call of calls) await expect(call(), String(call)).rejects.toMatchObject({ code: 'STORE_CLOSED' });
    expect(woken).toBe(0);
  });
});

describe('the clock of the memory store', () => {
  test('ignores steps of the wall clock', async () => {
    const hand = new Hand();
    let step = 0;
    const store = new MemoryStore({ clock: { monotonic: () => hand.at, wall: () => hand.clock.wall() + step } });
    await store.openSession(session('s'));
    step = 3_600_000;
    await store.add(QUEUE, [plain()], { caller: 'p', seq: 1 });
    const { jobs } = await store.claim(QUEUE, { session: 's', seq: 1, count: 1 });
    expect(jobs[0]?.processedOn).toBe(hand.clock.wall());
    expect(await store.sweep(QUEUE, 10)).toEqual({ stalled: [], failed: [], more: false });
  });

  test('never ends a session early, nor reports it due early, by fractions of a millisecond', async () => {
    const { store, hand } = open();
    hand.at = 1_000.75;
    await store.openSession(session('s', { durationMs: 10 }));
    await store.add(QUEUE, [plain({ delayMs: 5 })], { caller: 'p', seq: 1 });
    hand.at = 1_001;
    expect((await store.claim(QUEUE, { session: 's', seq: 1, count: 1 })).nextInMs).toBe(5);
    hand.at = 1_010.5;
    expect(await store.claim(QUEUE, { session: 's', seq: 2, count: 1 })).toMatchObject({
      sessionAlive: true,
      jobs: [{ id: '1' }],
    });
    hand.at = 1_010.75;
    expect((await store.claim(QUEUE, { session: 's', seq: 3, count: 1 })).sessionAlive).toBe(false);
  });
});

describe('jobs of a session in the memory store', () => {
  async function holding(): Promise<{ store: MemoryStore; hand: Hand }> {
    const { store, hand } = open();
    await store.openSession(session('s'));
    const jobs = ['a', 'b', 'c', 'd'].map((id) => plain({ id }));
    await store.add(QUEUE, jobs, { caller: 'p', seq: 1 });
    await store.claim(QUEUE, { session: 's', seq: 1, count: 2 });
    await store.claim(QUEUE, { session: 's', seq: 2, count: 1 });
    return { store, hand };
  }

  test('are listed in the order of their claims', async () => {
    const { store } = await holding();
    expect((await store.locks(QUEUE, { session: 's' })).map(({ jobId }) => jobId)).toEqual(['a', 'b', 'c']);
    expect((await store.claim(QUEUE, { session: 's', seq: 1, count: 2 })).jobs.map(({ id }) => id)).toEqual(['a', 'b']);
  });

  test('wait again in that order when the session is closed', async () => {
    const { store } = await holding();
    await store.closeSessions([{ queue: QUEUE, id: 's' }], 'closed');
    expect(await ids(store, 'waiting')).toEqual(['a', 'b', 'c', 'd']);
  });

  test('wait again in that order when the session is swept, at once or in chunks', async () => {
    const { store, hand } = await holding();
    hand.at += 1_000;
    await store.sweep(QUEUE, 2);
    await store.sweep(QUEUE, 2);
    expect(await ids(store, 'waiting')).toEqual(['a', 'b', 'c', 'd']);
  });
});

test('a lock whose extension ended before its session ends with the session', async () => {
  const { store, hand } = open();
  await store.openSession(session('s'));
  await store.add(QUEUE, [plain()], { caller: 'p', seq: 1 });
  const { jobs } = await store.claim(QUEUE, { session: 's', seq: 1, count: 1 });
  const [job] = jobs as [ClaimedJob];
  await store.extend(QUEUE, [{ jobId: job.id, token: job.token, durationMs: 100 }]);
  hand.at += 500;
  expect(await store.sweep(QUEUE, 10)).toEqual({ stalled: [], failed: [], more: false });
  expect(await store.sessions(QUEUE)).toMatchObject([{ locks: 1 }]);
  hand.at += 500;
  expect(await store.sweep(QUEUE, 10)).toMatchObject({ stalled: [job.id], failed: [], more: false });
});

test('the memory store removes the oldest jobs of a list first, wherever they wait', async () => {
  const { store } = open();
  const jobs = ['1st', '2nd', '3rd', '4th', '5th'].map((id, n) => plain({ id, lifo: n % 2 === 0, priority: 1 + (n % 3) }));
  await store.add(QUEUE, jobs, { caller: 'p', seq: 1 });
  expect((await store.change(QUEUE, { lists: ['prioritized'], limit: 2 }, { kind: 'remove' })).changed).toEqual(['1st', '2nd']);
  expect((await store.change(QUEUE, { lists: ['waiting', 'prioritized'], limit: 2 }, { kind: 'remove' })).changed).toEqual([
    '3rd',
    '4th',
  ]);
});

describe('the memory store after random calls', () => {
  const kinds = ['completed', 'failed', 'retry', 'delay', 'release'] as const;
  const step = fc.record({
    act: fc.constantFrom(
      'add',
      'claim',
      'settle',
      'sweep',
      'pass',
      'renew',
      'extend',
      'revoke',
      'change',
      'remove',
      'clear',
      'requeue',
      'close',
    ),
    n: fc.nat(50),
    kind: fc.constantFrom(...kinds),
    flag: fc.boolean(),
  });

  test('has every job in one place, locked exactly while active, and counts locks correctly', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80 }), async (moves) => {
        const { store, hand } = open();
        const held: ClaimedJob[] = [];
        let sessions = 0;
        let seq = 0;
        const next = async (): Promise<void> =>
          store.openSession(session(`s${++sessions}`, { durationMs: 40, maxStalls: sessions % 3 }));
        await next();
        for (const { act, n, kind, flag } of moves) {
          const job = held[n % Math.max(1, held.length)];
          const id = String(n % 20);
          if (act === 'add') {
            const jobs = [
              plain({ priority: n % 3, lifo: flag, delayMs: n % 4 === 0 ? n : 0, opts: flag ? '{"removeOnFail":2}' : '{}' }),
              plain(),
            ];
            await store.add(QUEUE, jobs, { caller: 'p', seq: ++seq });
          } else if (act === 'claim') {
            const timed = flag ? { timedMs: n } : {};
            const limit = n % 5 === 0 ? { limit: { max: 2, durationMs: 20 } } : {};
            const reply = await store.claim(QUEUE, { session: `s${sessions}`, seq: ++seq, count: n % 5, ...timed, ...limit });
            held.push(...reply.jobs);
            if (!reply.sessionAlive) await next();
          } else if (act === 'settle' && job !== undefined) {
            const keep = flag ? { count: n % 3 } : { ageMs: n };
            const outcome = {
              kind,
              jobId: job.id,
              token: job.token,
              value: '1',
              reason: 'r',
              stacktrace: '[]',
              delayMs: n % 3,
              lifo: flag,
              keep,
            };
            await store.settle(QUEUE, [outcome as Outcome]);
          } else if (act === 'extend' && job !== undefined) {
            await store.extend(QUEUE, [{ jobId: job.id, token: job.token, durationMs: n, ...(flag && { alone: flag }) }]);
          } else if (act === 'change') {
            await store.change(QUEUE, [id], { kind: 'priority', priority: n % 4, lifo: flag });
            await store.change(QUEUE, [id], { kind: 'delay', delayMs: n });
            await store.change(QUEUE, [id], flag ? { kind: 'promote' } : retryFrom('failed'));
          } else if (act === 'pass') hand.at += n;
          else if (act === 'sweep') await store.sweep(QUEUE, n % 4);
          else if (act === 'renew') await store.renew([{ queue: QUEUE, id: `s${sessions}`, acked: n }]);
          else if (act === 'revoke') await store.change(QUEUE, [id], { kind: 'revoke', reason: 'r' });
          else if (act === 'remove') await store.change(QUEUE, [id], { kind: 'remove' });
          else if (act === 'clear')
            await store.change(
              QUEUE,
              { lists: flag ? ['waiting', 'prioritized', 'delayed'] : ['completed', 'delayed'], limit: n % 3 },
              { kind: 'remove' },
            );
          else if (act === 'requeue')
            await store.change(
              QUEUE,
              { lists: ['failed', 'delayed'], limit: n % 3 },
              flag ? { kind: 'promote' } : retryFrom('failed'),
            );
          else if (act === 'close' && n < 10) {
            await store.closeSessions([{ queue: QUEUE, id: `s${sessions}` }], flag ? 'crashed' : 'closed');
            await next();
          }
          await check(store, sessions);
        }
      }),
      { numRuns: 150, seed: seedOfTest() },
    );
  });

  async function check(store: MemoryStore, sessions: number): Promise<void> {
    const { counts } = await store.status(QUEUE);
    const { jobs: listed } = await store.jobs(QUEUE, { lists: LISTS, start: 0, end: -1, asc: true });
    const { jobs: backwards } = await store.jobs(QUEUE, { lists: [...LISTS].reverse(), start: 0, end: -1, asc: false });
    expect(backwards.reverse()).toEqual(listed);
    expect(new Set(listed.map(({ id }) => id)).size).toBe(listed.length);
    expect(Object.values(counts).reduce((sum, count) => sum + count, 0)).toBe(listed.length);
    expect(
      (
        await store.jobs(
          QUEUE,
          listed.map(({ id }) => id),
        )
      ).jobs,
    ).toEqual(listed);
    for (const { id, state } of listed)
      expect((await store.locks(QUEUE, { jobIds: [id] }))[0] !== undefined, id).toBe(state === 'active');
    const owned = await Promise.all(Array.from({ length: sessions }, (_, n) => store.locks(QUEUE, { session: `s${n + 1}` })));
    expect(
      owned
        .flat()
        .map(({ jobId }) => jobId)
        .sort(),
    ).toEqual((await ids(store, 'active')).sort());
  }
});
