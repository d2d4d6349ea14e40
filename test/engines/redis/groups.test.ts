// Groups on Redis: what a queue stores for them, which calls still take the fast path, work in bites, and what processes of older
// versions do with such a queue.
import type { Redis } from 'ioredis';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Outcome } from '../../../src/job/outcome.js';
import type { ClaimedJob, NewJob } from '../../../src/job/record.js';
import { script } from '../../../src/store/redis/driver/scripts.js';
import type { RedisStore } from '../../../src/store/redis/index.js';
import { paced } from '../../support/wait/pace.js';
import { goBothWays, TAG } from './both-ways.js';
import { levelOf, newJob, newSession, openStore, openWithClient } from './support.js';

const MANY = 1_000;
let client: Redis;
let store: RedisStore;
let seq: number;

beforeEach(async () => {
  ({ store, client } = await openWithClient());
  await store.openSession(newSession());
  seq = 0;
});

async function add(...jobs: Partial<NewJob>[]): Promise<void> {
  await store.add('q', jobs.map(newJob), { caller: 'p', seq: ++seq });
}

const many = (count: number): Partial<NewJob>[] => Array.from({ length: count }, (_, n) => ({ group: `g${n}` }));

async function claim(count: number): Promise<ClaimedJob[]> {
  return (await store.claim('q', { session: 's', seq: ++seq, count })).jobs;
}

function completed({ id, token }: ClaimedJob): Outcome {
  return { kind: 'completed', jobId: id, token, value: 'null', keep: {} };
}

async function finish(jobs: ClaimedJob[]): Promise<void> {
  await store.settle('q', jobs.map(completed));
}

/** A call that completes the jobs and claims up to `count`. */
function settleArguments(jobs: ClaimRef[], count: number): string[] {
  const number = String(++seq);
  const outcomes = jobs.flatMap(({ id, fence }) => [id, String(fence), 'null']);
  const series = jobs.length === 0 ? [] : ['c', String(jobs.length), '', 's:', ...outcomes];
  const caller = jobs.length === 0 ? ['', '', ''] : ['s', number, ''];
  return [...caller, '1', 's', number, '', String(count), '', '', String(jobs.length), ...series];
}

type ClaimRef = Pick<ClaimedJob, 'id' | 'fence'>;

const bothWays = (jobs: ClaimRef[], count: number): Promise<'short' | 'long'> =>
  goBothWays(client, 'settle', 'plain-settle', settleArguments(jobs, count));

/** The keys that a queue has only with groups. */
async function keys(): Promise<string[]> {
  const all = (await client.keys(`${TAG}:*`)).map((key) => key.replace(`${TAG}:`, ''));
  return all.filter((key) => /^(groups|groupNames|members|ring|aside|resting|idle|behind)/.test(key)).sort();
}

/** Compares what is stored about groups with the jobs, and returns each difference. */
async function differences(): Promise<string[]> {
  const found: string[] = [];
  const active = new Map<string, number>();
  const waiting = new Map<string, number>();
  for (const [id, run] of Object.entries(await client.hgetall(`${TAG}:run`))) {
    const [numbers = '', , , isGroup, group] = run.split('\0');
    if (isGroup !== '' || group === undefined) continue;
    const state = numbers.charAt(0);
    if (state === 'A') active.set(group, (active.get(group) ?? 0) + 1);
    if (state !== 'W') continue;
    waiting.set(group, (waiting.get(group) ?? 0) + 1);
    const [, , , , , ord, , , , priority] = numbers.split(',');
    if ((await client.zscore(`${TAG}:members:${group}`, `${ord}${id}`)) !== priority) found.push(`${id} is not in ${group}`);
    const behind = priority === '0' ? ['behind:wait', id] : ['behind:prio', `${ord}${id}`];
    if ((await client.zscore(`${TAG}:${behind[0]}`, behind[1] ?? '')) === null) found.push(`${id} is in no list`);
  }
  const states = await client.hgetall(`${TAG}:groups`);
  for (const group of new Set([...active.keys(), ...waiting.keys(), ...Object.keys(states)])) {
    const [counted = '0', number = '', at = ''] = states[group]?.split(',') ?? [];
    if (Number(counted) !== (active.get(group) ?? 0)) found.push(`${group} counts ${counted} active jobs`);
    if ((await client.zcard(`${TAG}:members:${group}`)) !== (waiting.get(group) ?? 0)) found.push(`${group} has other members`);
    const places: (string | null)[] = [];
    for (const key of ['ring', 'aside', 'resting']) places.push(await client.zscore(`${TAG}:${key}`, group));
    const isIn = places.map((score) => (score === null ? '-' : '+')).join('');
    if (isIn !== { r: '+--', a: '-+-', s: '-++', '': '---' }[at]) found.push(`${group} at ${at} is in ${isIn}`);
    if (at === 'r' && places[0] !== number) found.push(`${group} has other numbers`);
    if (number === '' && waiting.has(group)) found.push(`${group} has waiting jobs and is not in line`);
  }
  return found;
}

describe('a queue with groups on Redis', () => {
  test('has the layout 5 from its first job of a group on, also a delayed one, until it is emptied and forgotten', async () => {
    await add({}, { lockKey: 'k' });
    expect([await levelOf(client, TAG), await keys()]).toEqual([1, []]);
    await add({ id: 'late', group: 'g', delayMs: 60_000 });
    expect(await levelOf(client, TAG)).toBe(5);
    await store.change('q', ['late'], { kind: 'remove' });
    await store.forget('q', { all: true });
    expect(await levelOf(client, TAG)).toBe(1);
  });

  test('stores nothing of a group whose jobs have finished and whose window has ended', async () => {
    await store.configure('q', { groups: { rate: { max: 5, durationMs: 50 } } });
    await add(...many(3), { group: 'g0', priority: 3 });
    await finish(await claim(10));
    await expect.poll(async () => (await store.sweep('q', 10), keys()), { timeout: paced(5_000) }).toEqual([]);
  });

  test('takes the fast path with its plain jobs, whether or not a group is in line', async () => {
    await add(...Array.from({ length: 6 }, () => ({})), { id: 'x', group: 'g' });
    const [one, two, three] = (await claim(3)) as [ClaimedJob, ClaimedJob, ClaimedJob];
    expect([one.id, two.id, three.id]).toContain('x');
    const plain = [one, two, three].filter(({ id }) => id !== 'x') as [ClaimedJob, ClaimedJob];
    expect(await goBothWays(client, 'settle', 'plain-settle', settleArguments([plain[0]], 1))).toBe('short');
    await add({ group: 'g' });
    expect(await goBothWays(client, 'settle', 'plain-settle', settleArguments([plain[1]], 1))).toBe('short');
    expect(await goBothWays(client, 'add', 'plain-add', ['p', String(++seq), '1', '1\0n\0{}\0{}'])).toBe('short');
  });

  test('passes many groups without jobs in several claims, each of which says that there is more', async () => {
    await add(...many(MANY), { id: 'last', group: 'z' });
    await store.change(
      'q',
      Array.from({ length: MANY }, (_, n) => String(n + 1)),
      { kind: 'remove' },
    );
    const replies: [number, boolean | undefined][] = [];
    for (let more: boolean | undefined = true; more === true && replies.length < 10; ) {
      const reply = await store.claim('q', { session: 's', seq: ++seq, count: 1 });
      ({ more } = reply);
      replies.push([reply.jobs.length, more]);
    }
    expect(replies).toEqual([
      [0, true],
      [0, true],
      [1, undefined],
    ]);
    expect(await differences()).toEqual([]);
  });

  test('looks at all groups again after a change of their limits, in several claims if they are many', async () => {
    await store.configure('q', { groups: { maxActive: 1 } });
    await add(...many(MANY), ...many(MANY));
    await claim(MANY);
    expect(await client.zcard(`${TAG}:aside`)).toBe(MANY);
    await store.configure('q', { groups: { maxActive: 2 } });
    expect(await client.zcard(`${TAG}:aside`)).toBeLessThan(MANY);
    let claimed = 0;
    for (let round = 0; round < 10; round += 1) claimed += (await claim(MANY)).length;
    expect(claimed).toBe(MANY);
    expect(await differences()).toEqual([]);
  });

  test('skips the place of a job that another program deleted, and gives its room back', async () => {
    await store.configure('q', { groups: { maxActive: 1 } });
    await add({ id: 'a', group: 'g' }, { id: 'b', group: 'g' });
    await client.hdel(`${TAG}:run`, 'a');
    expect(await claim(5)).toEqual([]);
    expect((await claim(5)).map(({ id }) => id)).toEqual(['b']);
  });
});

describe('the fast path of a settle with groups on Redis', () => {
  /** The locks of the session, in the order of their claims. */
  async function held(): Promise<ClaimRef[]> {
    const locks = await store.locks('q', { session: 's' });
    return locks.map(({ jobId, fence }) => ({ id: jobId, fence })).sort((a, b) => a.fence - b.fence);
  }

  /** Numbers that look random, the same in each run. */
  function numbersFrom(seed: number): (below: number) => number {
    let state = seed;
    return (below) => {
      state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
      return Math.floor(state / 65_536) % below;
    };
  }

  test.each([1, 2, 3, 4, 5, 6, 7, 8])(
    'leaves the data of the slow path after calls in any order, with the seed %i',
    async (seed) => {
      const random = numbersFrom(seed);
      const most = [0, 1, 2, 3][seed % 4] as number;
      if (most > 0) await store.configure('q', { groups: { maxActive: most } });
      const ways = { short: 0, long: 0 };
      for (let round = 0; round < 40; round += 1) {
        const jobs = Array.from({ length: random(10) }, () => (random(6) === 0 ? {} : { group: `g${random(7)}` }));
        if (round < 30 && jobs.length > 0) await add(...jobs);
        if (random(12) === 0) await add({ group: `g${random(7)}`, priority: 1 });
        if (random(15) === 0) await store.configure('q', { groups: most === 0 ? null : { maxActive: 1 + random(3) } });
        const done = (await held()).filter(() => random(3) > 0);
        if (random(2) === 0) done.reverse();
        const count = 1 + random(8);
        const way = await bothWays(done, count);
        ways[way] += 1;
        if (way === 'long') {
          const outcomes = done.map(({ id, fence }) => completed({ id, token: `s:${fence}` } as ClaimedJob));
          const request = { session: 's', seq: ++seq, count };
          if (outcomes.length === 0) await store.claim('q', request);
          else await store.settle('q', outcomes, { caller: 's', seq }, request);
        }
        expect(await differences()).toEqual([]);
      }
      expect(ways.short).toBeGreaterThan(20);
    },
  );

  test('serves a group again that the completed job gives a place, and wakes workers for one that it does not serve', async () => {
    await store.configure('q', { groups: { maxActive: 1 } });
    await add({ group: 'a' }, { group: 'a' }, { group: 'b' }, { group: 'b' });
    await claim(2);
    const [a, b] = (await held()) as [ClaimRef, ClaimRef];
    expect([await client.zcard(`${TAG}:aside`), await client.zcard(`${TAG}:ring`)]).toEqual([2, 0]);
    expect(await bothWays([a, b], 1)).toBe('short');
    expect(await client.zrange(`${TAG}:ring`, 0, '-1')).toEqual(['b']);
    expect((await held()).map(({ id }) => id)).toEqual(['2']);
    expect(await differences()).toEqual([]);
  });

  test('gives many jobs of one group to a claim, and the rest of the claim to another group', async () => {
    await add(...Array.from({ length: 30 }, () => ({ group: 'a' })), { group: 'b' }, { group: 'b' });
    expect(await bothWays([], 12)).toBe('short');
    expect((await held()).map(({ id }) => id)).toEqual(['1', '31', '2', '32', '3', '4', '5', '6', '7', '8', '9', '10']);
    expect(await bothWays(await held(), 25)).toBe('short');
    expect(await client.exists(`${TAG}:ring`)).toBe(0);
    expect(await bothWays(await held(), 1)).toBe('short');
    expect(await keys()).toEqual([]);
  });

  test('leaves everything alone if a group of the ring has no place under a limit that was lowered', async () => {
    await add(...Array.from({ length: 6 }, () => ({ group: 'a' })), ...Array.from({ length: 3 }, () => ({ group: 'b' })));
    const [a, b] = (await claim(5)) as [ClaimedJob, ClaimedJob];
    expect([a.group, b.group]).toEqual(['a', 'b']);
    await store.configure('q', { groups: { maxActive: 2 } });
    expect(await bothWays([b], 1)).toBe('short');
    expect(await bothWays([a], 1)).toBe('long');
  });

  const others: Record<string, () => Promise<unknown>> = {
    'a priority in a group': () => add({ group: 'a', priority: 1 }),
    'a deduplication id': () => add({ group: 'a', deduplication: { id: 'd' } }),
    'a limit of one group': () => store.configure('q', { group: { key: 'a', maxActive: 3 } }),
    'a rate of all groups': () => store.configure('q', { groups: { rate: { max: 9, durationMs: 60_000 } } }),
    'a block of another group': async () => {
      await add({ group: 'z' });
      await store.configure('q', { group: { key: 'z', blockedMs: 60_000 } });
    },
    'a state that another program has changed': () => client.hset(`${TAG}:groups`, 'a', '0,0'),
    'a group in the ring whose state says that it is aside': () => client.hset(`${TAG}:groups`, 'a', '1,1,a'),
    'a job that another program has deleted': () => client.hdel(`${TAG}:run`, '2'),
    'a group whose jobs were removed': () => store.change('q', ['2'], { kind: 'remove' }),
  };
  test.each(Object.keys(others))('leaves everything alone with %s', async (what) => {
    await add({ group: 'a' }, { group: 'a' });
    const [job] = await claim(1);
    await others[what]?.();
    expect(await bothWays([job as ClaimedJob], 5)).toBe('long');
  });
});

describe('the states of groups on Redis', () => {
  test.each(['', 'garbage', '1,2', ',,,,,,,,,', '0,0,r,x'])(
    'are made anew if another program has set them to %j',
    async (text) => {
      await add({ group: 'g' }, { group: 'g' }, { group: 'h' }, { group: 'h' });
      await client.hset(`${TAG}:groups`, 'g', text);
      expect((await claim(10)).map(({ id }) => id).sort()).toEqual(['1', '2', '3', '4']);
    },
  );

  test('are made anew if another program has deleted them, also for groups that rest', async () => {
    await add({ group: 'g' }, { group: 'h' });
    await store.configure('q', { group: { key: 'g', blockedMs: paced(500) } });
    await client.del(`${TAG}:groups`);
    expect((await claim(1)).map(({ id }) => id)).toEqual(['2']);
    const rest = async (): Promise<string[]> => (await claim(1)).map(({ id }) => id);
    await expect.poll(rest, { timeout: paced(5_000) }).toEqual(['1']);
    expect(await differences()).toEqual([]);
  });

  /** Calls of all kinds on a few groups, from two connections at once. */
  async function work(one: RedisStore, session: string, rounds: number): Promise<void> {
    await one.openSession(newSession({ id: session }));
    let held: ClaimedJob[] = [];
    for (let round = 1; round <= rounds; round += 1) {
      const group = `g${round % 4}`;
      const jobs = [{ group }, { group, priority: round % 3 }, { group, lifo: true }, {}].map(newJob);
      await one.add('q', jobs, { caller: session, seq: round });
      if (round % 7 === 0) await one.configure('q', { group: { key: group, paused: round % 2 === 0 } });
      if (round % 5 === 0) await one.configure('q', { groups: { maxActive: 1 + (round % 3) } });
      const outcomes: Outcome[] = held.map(({ id, token, fence }) =>
        fence % 3 === 0 ? { kind: 'release', jobId: id, token } : completed({ id, token } as ClaimedJob),
      );
      const request = { session, seq: round, count: 3 };
      held = (await one.settle('q', outcomes, { caller: session, seq: round }, request)).claimed?.jobs ?? [];
      if (round % 11 === 0) await one.change('q', { lists: ['waiting'], limit: 2 }, { kind: 'remove' });
      if (round % 13 === 0)
        await one.change(
          'q',
          held.map(({ id }) => id),
          { kind: 'revoke', reason: 'r' },
        );
    }
    await one.closeSessions([{ queue: 'q', id: session }], 'closed');
  }

  test('fit the jobs after calls of all kinds through two connections at once', async () => {
    const other = await openStore({ url: `redis://127.0.0.1:${client.options.port}` });
    await Promise.all([work(store, 'one', 60), work(other, 'two', 60)]);
    expect((await store.status('q')).counts.waiting).toBeGreaterThan(10);
    expect(await differences()).toEqual([]);
  });

  test('are judged by a check that finds a settle which frees no place', async () => {
    await add({ group: 'g' }, { group: 'g' });
    const [job] = await claim(1);
    const { text } = script('settle');
    const freed = 'math.max(0, actives[slot] - 1)';
    expect(text).toContain(freed);
    await client.eval(text.replace(freed, 'actives[slot]'), 1, TAG, ...settleArguments([job as ClaimedJob], 1));
    expect(await differences()).toEqual(['g counts 2 active jobs']);
  });

  test('are judged by a check that finds a settle of the slow path which frees no place', async () => {
    await add({ group: 'g', priority: 1 }, { group: 'g', priority: 1 });
    const [job] = await claim(1);
    const { text } = script('settle');
    const freed = 'openGroups().left(name:sub(2))';
    expect(text).toContain(freed);
    await client.eval(text.replace(freed, ''), 1, TAG, ...settleArguments([job as ClaimedJob], 1));
    expect(await differences()).toEqual(['g counts 2 active jobs']);
  });
});
