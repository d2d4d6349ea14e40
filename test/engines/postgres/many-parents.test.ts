// One child of many parents: how its costs grow with their number, and that they all go on.
import { readFileSync } from 'node:fs';
import type { Client } from 'pg';
import { expect, test } from 'vitest';
import type { NewJob } from '../../../src/job/record.js';
import type { Outcome } from '../../../src/job/outcome.js';
import type { PostgresStore } from '../../../src/store/postgres/index.js';
import { paced } from '../../support/wait/pace.js';
import { stopwatch } from '../../support/wait/stopwatch.js';
import { claimOne, claimSome, newCall, relayAll, stateOf, withoutRelay } from './family-scene.js';
import { completed, newClient, newDatabase, newJob, openStore } from './support.js';

const FEW = 300;
const MANY = 4 * FEW;
const ROUNDS = 3;
const DOOM = { link: 'failed', release: 'now', doom: true } as const;
const RETRY = { kind: 'retry', from: 'completed', resetAttemptsMade: false, resetAttemptsStarted: false } as const;

const idsOf = (tag: string, count: number): string[] => Array.from({ length: count }, (_, n) => `${tag}-${n}`);

/** Parents in `p`, and one child of them all in `c`. */
function familyOf(count: number, tag: string, child = tag): NewJob[] {
  const ids = idsOf(tag, count);
  const parents = ids.map((id) => ({ queue: 'p', id, onFailure: DOOM }));
  return [
    ...ids.map((id) => newJob({ id, queue: 'p', waitsForChildren: true })),
    newJob({ id: child, queue: 'c', shares: true, parents }),
  ];
}

async function add(store: PostgresStore, count: number, tag: string, child?: string): Promise<void> {
  const replies = await store.add('p', familyOf(count, tag, child), newCall());
  expect(replies.slice(0, count).every(({ status }) => status === 'added')).toBe(true);
}

async function end(store: PostgresStore, id: string, kind: 'completed' | 'failed'): Promise<void> {
  const job = await claimOne(store, 'c', id);
  const failed: Outcome = { kind: 'failed', jobId: id, token: job.token, reason: 'broken', stacktrace: '[]', keep: {} };
  expect((await store.settle('c', [kind === 'completed' ? completed(job) : failed])).results).toEqual(['done']);
}

async function change(store: PostgresStore, id: string, kind: Parameters<PostgresStore['change']>[2]): Promise<void> {
  expect(await store.change('c', [id], kind)).toMatchObject({ changed: [id] });
}

/** What happens to a child. `before` is not timed. */
const EVENTS: Record<
  string,
  {
    before?: (store: PostgresStore, child: string) => Promise<void>;
    work: (store: PostgresStore, child: string, count: number) => Promise<void>;
  }
> = {
  completes: { work: (store, child) => end(store, child, 'completed') },
  fails: { work: (store, child) => end(store, child, 'failed') },
  'is cancelled': { work: (store, child) => change(store, child, { kind: 'cancel', reason: 'no' }) },
  'is removed': { work: (store, child) => change(store, child, { kind: 'remove' }) },
  'is retried': {
    before: (store, child) => end(store, child, 'completed'),
    work: (store, child) => change(store, child, RETRY),
  },
  'gets as many further parents': { work: (store, child, count) => add(store, count, `${child}-more`, child) },
  'gets further parents after its end': {
    before: (store, child) => end(store, child, 'completed'),
    work: (store, child, count) => add(store, count, `${child}-more`, child),
  },
};

/** How many times as long `work` keeps the server busy with four times as many parents. The shortest of each: what else runs only adds. */
async function growth(client: Client, prepare: (count: number, tag: string) => Promise<() => Promise<void>>): Promise<number> {
  const least = { [FEW]: Infinity, [MANY]: Infinity };
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const count of [FEW, MANY]) {
      const work = await prepare(count, `${count}-${round}`);
      const before = await busyMs(client);
      const elapsed = stopwatch();
      await work();
      const took = elapsed();
      const after = await busyMs(client);
      least[count] = Math.min(least[count] as number, before === undefined || after === undefined ? took : after - before);
    }
  }
  return (least[MANY] as number) / (least[FEW] as number);
}

/** The processor time of all connections to the database, in ms. Undefined where the system does not tell. */
async function busyMs(client: Client): Promise<number | undefined> {
  const { rows } = await client.query('SELECT pid FROM pg_stat_activity WHERE datname = current_database()');
  try {
    const times = rows.map(({ pid }) => Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6);
    return times.reduce((sum, time) => sum + time, 0);
  } catch {
    return undefined;
  }
}

test.each(Object.entries(EVENTS))(
  'a child of four times as many parents that %s costs about four times as much',
  {
    timeout: paced(120_000),
  },
  async (_, { before, work }) => {
    const url = await newDatabase();
    const store = await openStore({ url });
    const client = await newClient(url);
    await withoutRelay(client, async () => {
      const times = await growth(client, async (count, tag) => {
        await add(store, count, tag);
        await before?.(store, tag);
        return () => work(store, tag, count);
      });
      expect(times).toBeLessThan(8);
    });
  },
);

test('four times as many parents that are removed with their child cost about four times as much', {
  timeout: paced(120_000),
}, async () => {
  const url = await newDatabase();
  const store = await openStore({ url });
  const times = await growth(await newClient(url), async (count, tag) => {
    await add(store, count, tag);
    return async () => {
      await store.change('p', idsOf(tag, count), { kind: 'remove', children: true });
      await relayAll(store);
      expect(await stateOf(store, 'c', tag)).toBe('missing');
    };
  });
  expect(times).toBeLessThan(8);
});

test('the child goes with the last of its parents that is removed, and stays if the last one is parted from it', async () => {
  const url = await newDatabase();
  const store = await openStore({ url });
  const client = await newClient(url);
  const part = async (child: string, kinds: ('remove' | 'unlink')[]): Promise<string> => {
    await add(store, kinds.length, child);
    // The messages wait, so that one relay delivers them all.
    await withoutRelay(client, async () => {
      for (const [n, kind] of kinds.entries()) {
        const by = kind === 'remove' ? { kind, children: true } : { kind, child: { queue: 'c', id: child } };
        expect(await store.change('p', [`${child}-${n}`], by)).toMatchObject({ changed: [`${child}-${n}`] });
      }
    });
    await relayAll(store);
    return stateOf(store, 'c', child);
  };
  expect(await part('removed', ['remove', 'remove', 'remove'])).toBe('missing');
  expect(await part('removed last', ['unlink', 'remove', 'unlink', 'remove'])).toBe('missing');
  expect(await part('parted last', ['remove', 'unlink', 'remove', 'unlink'])).toBe('waiting');
  expect(await part('parted', ['unlink', 'unlink'])).toBe('waiting');
});

test.each(['completed', 'removed', 'failed'] as const)('all parents of a child that is %s go on', async (how) => {
  const store = await openStore({ url: await newDatabase() });
  await add(store, MANY, 'kid');
  expect((await store.status('p')).counts).toMatchObject({ waiting: 0, 'waiting-children': MANY });
  await (how === 'removed' ? change(store, 'kid', { kind: 'remove' }) : end(store, 'kid', how));
  await relayAll(store);
  expect((await store.status('p')).counts).toMatchObject({ waiting: MANY, 'waiting-children': 0 });
  const ran: string[] = [];
  while (ran.length < MANY) {
    const jobs = await claimSome(store, 'p', 500);
    expect(jobs.length).toBeGreaterThan(0);
    expect(jobs.filter(({ doomedBy }) => doomedBy !== undefined)).toHaveLength(how === 'failed' ? jobs.length : 0);
    await store.settle('p', jobs.map(completed));
    ran.push(...jobs.map(({ id }) => id));
  }
  expect(ran.toSorted()).toEqual(idsOf('kid', MANY).toSorted());
});
