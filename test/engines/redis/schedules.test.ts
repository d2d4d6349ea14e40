// Schedules on Redis: what their queue keeps, which calls still take the fast path, the second net of a sweep, work in bites, and races of
// several connections, with a broken claim that the same check must find.
import type { Redis } from 'ioredis';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { ClaimedJob } from '../../../src/job/record.js';
import type { ScheduleChange, ScheduleRecord, Slot } from '../../../src/store/contract/index.js';
import { script } from '../../../src/store/redis/driver/scripts.js';
import type { RedisStore } from '../../../src/store/redis/index.js';
import { goBothWays, TAG } from './both-ways.js';
import { newJob, newSession, openStore, openWithClient } from './support.js';

type Put = Extract<ScheduleChange, { kind: 'put' }>;

let client: Redis;
let store: RedisStore;
let seq: number;

beforeEach(async () => {
  ({ store, client } = await openWithClient());
  await store.openSession(newSession());
  seq = 0;
});

function slot(id: string, count: number, { at = count * 60_000, dueInMs = 0 } = {}): Slot {
  return { at, dueInMs, count, job: { ...newJob(), id: `repeat:${id}:${count}` } };
}

function putOf(id: string, difference: Partial<Put> = {}): Put {
  return { kind: 'put', id, version: 0, spec: '{}', serial: false, next: slot(id, 1), ...difference };
}

async function change(...changes: ScheduleChange[]): Promise<(ScheduleRecord | undefined)[]> {
  const replies = await store.schedule('q', changes);
  expect(replies.map(({ status }) => status)).toEqual(changes.map(() => 'done'));
  return replies.map(({ record }) => record);
}

async function put(id: string, difference: Partial<Put> = {}): Promise<ScheduleRecord> {
  return (await change(putOf(id, difference)))[0] as ScheduleRecord;
}

async function records(): Promise<ScheduleRecord[]> {
  return (await store.status('q', { schedules: { start: 0, end: -1, asc: true } })).schedules?.records ?? [];
}

async function stateOf(id: string): Promise<string | undefined> {
  return (await records()).find((record) => record.id === id)?.state;
}

async function claim(count: number): Promise<ClaimedJob[]> {
  return (await store.claim('q', { session: 's', seq: ++seq, count })).jobs;
}

const numbered = (count: number): string[] => Array.from({ length: count }, (_, n) => `s${n}`);

/** The keys that a queue has only with schedules. */
const KEYS = ['schedules', 'scheduleSlots', 'scheduleChecks', 'owing', 'extra'].map((key) => `${TAG}:${key}`);

describe('a queue with schedules on Redis', () => {
  test('takes the fast path with its plain jobs, but not while a schedule is owing', async () => {
    const { version } = await put('a');
    await claim(1);
    await store.add('q', [newJob(), newJob()], { caller: 'p', seq: 1 });
    const claimArguments = (): string[] => ['', '', '', '1', 's', String(++seq), '', '1', '', '', '0'];
    expect(await goBothWays(client, 'settle', 'plain-settle', claimArguments())).toBe('long');
    await change({ kind: 'pause', id: 'a', version: version + 1 });
    expect(await goBothWays(client, 'settle', 'plain-settle', claimArguments())).toBe('short');
  });

  test('keeps nothing of a schedule that was removed, and its last job as an ordinary one', async () => {
    const { version } = await put('a');
    const [job] = await claim(1);
    expect(await client.exists(...KEYS)).toBe(4);
    await change({ kind: 'remove', id: 'a', version: version + 1 });
    expect(await client.exists(...KEYS)).toBe(1);
    expect(await client.hgetall(`${TAG}:extra`)).toEqual({ 'repeat:a:1': '0,{"s":"a"}' });
    const outcome = {
      kind: 'completed',
      jobId: job?.id ?? '',
      token: job?.token ?? '',
      value: 'null',
      keep: { count: 0 },
    } as const;
    expect((await store.settle('q', [outcome])).results).toEqual(['done']);
    expect(await client.exists(...KEYS)).toBe(0);
  });

  test('wakes workers when the end of a serial run makes it owing', async () => {
    await put('a', { serial: true });
    const [job] = await claim(1);
    let woken = 0;
    const stop = store.watch('q', () => (woken += 1), 'jobs');
    onTestFinished(stop);
    // The first call of a watcher tells that it listens.
    await expect.poll(() => client.pubsub('NUMSUB', `${TAG}:jobs-wake`)).toEqual([`${TAG}:jobs-wake`, 1]);
    await expect.poll(async () => (await store.claim('q', { session: 's', seq: ++seq, count: 1 })).jobs).toEqual([]);
    const before = woken;
    await store.settle('q', [{ kind: 'completed', jobId: job?.id ?? '', token: job?.token ?? '', value: 'null', keep: {} }]);
    await expect.poll(() => woken).toBeGreaterThan(before);
  });

  test('gives no version twice, also after its clock was set back', async () => {
    const ahead = Date.now() + 3_600_000;
    const text = script('schedule').text.replace("call('TIME')", `{ ${Math.floor(ahead / 1_000)}, 0 }`);
    const made = await client.eval(text, 1, TAG, 'u', 'a', '0', '{}', '0', '', '', '', '', '', '');
    const version = Number(/\d+/.exec(String(made))?.[0]);
    expect(version).toBeGreaterThanOrEqual(Math.floor(ahead / 1_000) * 1_000);
    await change({ kind: 'remove', id: 'a', version });
    const { version: second } = await put('a');
    expect(second).toBeGreaterThan(version);
    expect(second).toBeLessThan(version + 10);
  });
});

describe('the second net of a sweep on Redis', () => {
  const passed = (): number => Date.now() - 61_000;
  const lose = (jobId: string): Promise<number> => client.hdel(`${TAG}:run`, jobId);

  test('finds a schedule whose next job is gone, once its slot passed more than a minute ago', async () => {
    const { version } = await put('late', { next: slot('late', 1, { at: passed(), dueInMs: 9_000 }) });
    await put('fresh', { next: slot('fresh', 1, { at: Date.now() - 1_000, dueInMs: 9_000 }) });
    for (const id of ['late', 'fresh']) await lose(`repeat:${id}:1`);
    await store.sweep('q', 10);
    expect([await stateOf('late'), await stateOf('fresh')]).toEqual(['owing', 'running']);
    expect((await store.probe('q')).undone).toBe(true);
    await change({ kind: 'advance', id: 'late', version: version + 1, next: slot('late', 2) });
  });

  test.for([
    ['A', false, 'owing'],
    ['C', false, 'owing'],
    ['A', true, 'running'],
    ['C', true, 'owing'],
  ] as const)(
    'judges a next job in state %s, taken by a process that knows no schedules (serial: %s): %s',
    async ([letter, serial, expected]) => {
      await put('a', { serial, next: slot('a', 1, { at: passed() }) });
      const run = (await client.hget(`${TAG}:run`, 'repeat:a:1')) ?? '';
      const fields = run.split(',');
      fields[0] = letter;
      if (letter === 'C') fields[4] = '1';
      await client.hset(`${TAG}:run`, 'repeat:a:1', fields.join(','));
      await store.sweep('q', 10);
      expect(await stateOf('a')).toBe(expected);
      expect(await client.hget(`${TAG}:extra`, 'repeat:a:1')).toBe(expected === 'owing' ? '0,{"s":"a"}' : '16,{"s":"a"}');
    },
  );

  test('reaches each schedule, however many others have jobs that wait', async () => {
    const ids = numbered(25);
    await change(...ids.map((id, n) => putOf(id, { next: slot(id, 1, { at: passed() - 100 + n }) })));
    await lose('repeat:s24:1');
    for (let sweeps = 0; sweeps < 3; sweeps += 1) await store.sweep('q', 10);
    const owing = (await records()).filter(({ state }) => state === 'owing');
    expect(owing.map(({ id }) => id)).toEqual(['s24']);
  });
});

describe('many schedules on Redis', () => {
  test('are forgotten in bites, with their next jobs', async () => {
    await change(...numbered(250).map((id, n) => putOf(id, { next: slot(id, 1, { dueInMs: n % 2 === 0 ? 0 : 60_000 }) })));
    await store.forget('q', { all: true });
    const { counts, schedules } = await store.status('q', { schedules: { count: true } });
    expect([counts.waiting, counts.delayed, schedules?.count]).toEqual([0, 0, 0]);
    expect(await client.exists(...KEYS)).toBe(0);
  });

  test.for(['delayed', 'waiting'] as const)('keep their %s jobs when all others are removed by selection', async (list) => {
    const dueInMs = list === 'delayed' ? 600_000 : 0;
    for (let part = 0; part < 3; part += 1) {
      const ids = numbered(150).map((id) => `${part}-${id}`);
      await change(...ids.map((id) => putOf(id, { next: slot(id, 1, { dueInMs }) })));
      await store.add(
        'q',
        Array.from({ length: 200 }, () => newJob({ delayMs: dueInMs })),
        { caller: 'p', seq: ++seq },
      );
    }
    const { changed } = await store.change('q', { lists: [list], limit: 10_000 }, { kind: 'remove' });
    expect(changed).toHaveLength(600);
    expect((await store.status('q')).counts[list]).toBe(450);
  });
});

describe('a race of connections on Redis', () => {
  /** Returns how the rule of schedules is broken: each running schedule has one next job that has not started, or is owing. */
  async function breaches(): Promise<string[]> {
    const found: string[] = [];
    for (const { id, state, nextJobId } of await records()) {
      const job = nextJobId === undefined ? undefined : (await store.jobs('q', [nextJobId])).jobs[0];
      if (state === 'running' && (job === undefined || job.state === 'active')) found.push(`${id} is running without a next job`);
      if (state === 'owing' && nextJobId !== undefined) found.push(`${id} is owing and has a next job`);
    }
    return found;
  }

  test('of claims, advances, puts and removals keeps the rule', async () => {
    const url = `redis://127.0.0.1:${client.options.port}`;
    const stores = [store, await openStore({ url }), await openStore({ url }), await openStore({ url })];
    const made = new Map<string, number>();
    const act = async (one: RedisStore, session: string, kind: number, number: number): Promise<void> => {
      const id = `x${number % 3}`;
      const { schedules } = await one.status('q', { schedules: { ids: [id] } });
      const [known] = schedules?.records ?? [];
      const { version = 0, count = 0 } = known ?? {};
      // Counts go on beyond those that other calls may have used.
      const next = slot(id, Math.max(count, made.get(id) ?? 0) + 1);
      const changes: ScheduleChange[] = [
        { kind: 'advance', id, version, next },
        putOf(id, { version, next }),
        { kind: 'remove', id, version },
      ];
      const picked = changes[number % 10 === 0 ? 2 : kind % 2] as ScheduleChange;
      const [[reply]] = await Promise.all([one.schedule('q', [picked]), one.claim('q', { session, seq: number + 1, count: 1 })]);
      if (reply?.status === 'done' && 'next' in picked) made.set(id, Math.max(made.get(id) ?? 0, next.count));
    };
    await Promise.all(
      stores.map(async (one, n) => {
        await one.openSession(newSession({ id: `r${n}` }));
        for (let number = 0; number < 60; number += 1) await act(one, `r${n}`, n + number, number);
      }),
    );
    expect(await breaches()).toEqual([]);
    const { events } = await store.events('q', 0, 10_000);
    const added = events.filter(({ name }) => name === 'added').map(({ jobId }) => jobId);
    expect(added.length).toBeGreaterThan(20);
  });

  test('of two advances, or of a put and an advance, makes one job of a debt', async () => {
    const url = `redis://127.0.0.1:${client.options.port}`;
    const other = await openStore({ url });
    let { version } = await put('a');
    for (let round = 1; round <= 20; round += 1) {
      await claim(1);
      const advance: ScheduleChange = { kind: 'advance', id: 'a', version: version + 1, next: slot('a', 2 * round) };
      const rival: ScheduleChange =
        round % 2 === 0
          ? { ...advance, next: slot('a', 2 * round + 1) }
          : putOf('a', { version: version + 1, next: slot('a', 2 * round + 1) });
      const replies = (await Promise.all([store.schedule('q', [advance]), other.schedule('q', [rival])])).flat();
      expect(replies.map(({ status }) => status).sort()).toEqual(['done', 'stale']);
      expect((await store.status('q')).counts.waiting).toBe(1);
      version += 2;
    }
    expect(await breaches()).toEqual([]);
  });

  test('is judged by a check that finds a claim which makes no debt', async () => {
    await put('a');
    const made = 'debts, debtCount = openSchedules().started(ids, extras)';
    const { text } = script('settle');
    expect(text).toContain(made);
    await client.eval(text.replace(made, 'debtCount = 0'), 1, TAG, '', '', '', '1', 's', String(++seq), '', '1', '', '', '0');
    expect(await breaches()).toEqual(['a is running without a next job']);
  });
});
