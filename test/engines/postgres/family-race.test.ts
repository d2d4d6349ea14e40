// Families on many connections: children that end at once, relays that meet, processes that die between an end and its delivery, and adds
// that cross settles.
import type { Client } from 'pg';
import { describe, expect, test } from 'vitest';
import type { ClaimedJob, NewJob } from '../../../src/job/record.js';
import type { Outcome } from '../../../src/job/outcome.js';
import { functionTexts } from '../../../src/store/postgres/driver/sql.js';
import type { PostgresStore } from '../../../src/store/postgres/index.js';
import {
  addFamily,
  child,
  claimOne,
  claimSome,
  linksOf,
  messages,
  newCall,
  relayAll,
  stateOf,
  withoutRelay,
} from './family-scene.js';
import { insist } from '../../support/wait/insist.js';
import { until } from '../../support/wait/until.js';
import { blocked, completed, deadlocks, newClient, newDatabase, newJob, openStore, shuffled } from './support.js';

const FAIL = { link: 'failed', release: 'now', doom: true } as const;
const RETRY = { kind: 'retry', from: 'completed', resetAttemptsMade: false, resetAttemptsStarted: false } as const;

const failed = ({ id, token }: ClaimedJob): Outcome => ({
  kind: 'failed',
  jobId: id,
  token,
  reason: 'broken',
  stacktrace: '[]',
  keep: {},
});

interface Scene {
  url: string;
  client: Client;
  store: PostgresStore;
}

async function newScene(): Promise<Scene> {
  const url = await newDatabase();
  return { url, client: await newClient(url), store: await openStore({ url }) };
}

async function settle(store: PostgresStore, queue: string, ...outcomes: Outcome[]): Promise<void> {
  const { results } = await store.settle(queue, outcomes);
  expect(results).toEqual(outcomes.map(() => 'done'));
}

async function releasesOf(store: PostgresStore, parent: string): Promise<number> {
  const { events } = await store.events('p', 0, 10_000);
  return events.filter(({ name, jobId, prev }) => name === 'waiting' && jobId === parent && prev === 'waiting-children').length;
}

test('a thousand children that end on 20 connections release their parent once', async () => {
  const { url, store } = await newScene();
  const ids = Array.from({ length: 1_000 }, (_, n) => `kid-${n}`);
  await addFamily(store, ids);
  const jobs = await claimSome(store, 'c', 1_000);
  expect(jobs).toHaveLength(1_000);
  const stores = await Promise.all(Array.from({ length: 20 }, () => openStore({ url, max: 1 })));
  await Promise.all(
    stores.map(async (one, n) => {
      for (const job of jobs.slice(n * 50, (n + 1) * 50)) await settle(one, 'c', completed(job));
    }),
  );
  await until('the parent to wait', async () => (await stateOf(store, 'p', 'parent')) === 'waiting');
  expect(await linksOf(store)).toBe('0 pending, 1000 processed, 0 failed, 0 ignored');
  expect(await releasesOf(store, 'parent')).toBe(1);
  expect((await store.status('p')).counts).toMatchObject({ waiting: 1, 'waiting-children': 0 });
  expect(await deadlocks(url)).toBe(0);
});

test('the ends of many children in one call are one message, and release their parent before the call returns', async () => {
  const { client, store } = await newScene();
  await addFamily(
    store,
    Array.from({ length: 100 }, (_, n) => `kid-${n}`),
  );
  const jobs = await claimSome(store, 'c', 100);
  await withoutRelay(client, () => settle(store, 'c', ...jobs.slice(0, 99).map(completed)));
  expect(await messages(client)).toHaveLength(1);
  await settle(store, 'c', completed(jobs[99] as ClaimedJob));
  expect(await stateOf(store, 'p', 'parent')).toBe('waiting');
  expect(await messages(client)).toEqual([]);
});

test('a tree is gone when the call that removes its root returns', async () => {
  const { store } = await newScene();
  // Each generation is in the other queue.
  const place = (level: number): { queue: string; id: string } => ({ queue: level % 2 === 0 ? 'p' : 'c', id: `level-${level}` });
  const jobs = Array.from({ length: 6 }, (_, level) =>
    newJob({ ...place(level), waitsForChildren: true, ...(level > 0 && { parents: [place(level - 1)] }) }),
  );
  await store.add('p', [...jobs, newJob({ ...place(6), parents: [place(5)] })], newCall());
  await store.change('p', ['level-0'], { kind: 'remove', children: true });
  const states = await Promise.all(Array.from({ length: 7 }, (_, level) => stateOf(store, place(level).queue, place(level).id)));
  expect(states).toEqual(states.map(() => 'missing'));
  for (const queue of ['p', 'c']) expect((await store.status(queue)).counts).toMatchObject({ waiting: 0, 'waiting-children': 0 });
});

describe('a process that dies between the end of a child and its delivery', () => {
  const KILLED = 'PERFORM pg_terminate_backend(pg_backend_pid())';

  test('leaves a message that a probe of another process finds, in either queue, and a relay delivers', async () => {
    const { url, client, store } = await newScene();
    await addFamily(store, ['a']);
    const job = await claimOne(store, 'c', 'a');
    await withoutRelay(client, () => settle(store, 'c', completed(job)), KILLED);
    await store.close();
    const other = await openStore({ url });
    // Without a relay, the parent waits.
    expect(await stateOf(other, 'p', 'parent')).toBe('waiting-children');
    for (const queue of ['p', 'c']) expect((await other.probe(queue)).undone).toBe(true);
    expect(await claimSome(other, 'p', 1)).toEqual([]);
    expect(await other.relay('p', 10)).toEqual({ delivered: 1, more: false });
    expect(await stateOf(other, 'p', 'parent')).toBe('waiting');
    for (const queue of ['p', 'c']) expect((await other.probe(queue)).undone).toBeUndefined();
  });

  test('has sent one dead letter, also if the reply was lost and the call is repeated', async () => {
    const { url, client, store } = await newScene();
    await store.add('p', [newJob({ id: 'a', deadLetter: 'dead' })], newCall());
    const job = await claimOne(store, 'p', 'a');
    const call = { caller: job.token.split(':')[0] as string, seq: 2 };
    await withoutRelay(client, async () => void (await store.settle('p', [failed(job)], call)), KILLED);
    await store.close();
    const other = await openStore({ url });
    expect((await other.probe('p')).undone).toBe(true);
    expect((await other.settle('p', [failed(job)], call)).results).toEqual(['done']);
    expect((await other.settle('p', [failed(job)])).results).toEqual(['done']);
    expect(await other.relay('p', 10)).toEqual({ delivered: 1, more: false });
    const { jobs } = await other.jobs('dead', { lists: ['waiting'], start: 0, end: -1, asc: true });
    expect(jobs.map(({ id }) => id)).toEqual([`p:a:${job.fence}`]);
  });
});

describe('two relays at once', () => {
  /** Lets another relay hold the first message, while `work` runs. */
  async function holdFirst(url: string, work: () => Promise<void>): Promise<void> {
    const relay = await newClient(url);
    await relay.query('BEGIN');
    await relay.query('SELECT FROM holdfast.outbox ORDER BY number LIMIT 1 FOR UPDATE');
    await work();
    await relay.query('ROLLBACK');
  }

  /** A child has ended and is retried. A relay delivers the second message before the first. */
  async function reordered({ url, client, store }: Scene): Promise<void> {
    await addFamily(store, ['a', 'b']);
    const job = await claimOne(store, 'c', 'a');
    await withoutRelay(client, async () => {
      await settle(store, 'c', completed(job));
      await store.change('c', ['a'], RETRY);
    });
    expect(await messages(client)).toHaveLength(2);
    await holdFirst(url, async () => {
      expect(await store.relay('c', 10)).toEqual({ delivered: 1, more: true });
    });
    expect(await store.relay('c', 10)).toEqual({ delivered: 1, more: false });
  }

  test('a message that is delivered after a newer one does not change its link', async () => {
    const scene = await newScene();
    await reordered(scene);
    expect(await linksOf(scene.store)).toBe('2 pending, 0 processed, 0 failed, 0 ignored');
  });

  test('without the numbers, the older message would end a link that is pending again', async () => {
    const scene = await newScene();
    const text = functionTexts().deliver as string;
    expect(text).toContain('number > sent');
    await scene.client.query('SET search_path TO holdfast');
    await scene.client.query(text.replace('CREATE FUNCTION', 'CREATE OR REPLACE FUNCTION').replace('number > sent', 'true'));
    await reordered(scene);
    expect(await linksOf(scene.store)).toBe('1 pending, 1 processed, 0 failed, 0 ignored');
  });

  test('a removal that is delivered before the end of the child keeps its value', async () => {
    const { url, client, store } = await newScene();
    await addFamily(store, ['a', 'b']);
    const job = await claimOne(store, 'c', 'a');
    await withoutRelay(client, async () => {
      await settle(store, 'c', { kind: 'completed', jobId: 'a', token: job.token, value: '"kept"', keep: { count: 0 } });
    });
    expect(await messages(client)).toHaveLength(2);
    await holdFirst(url, async () => void (await store.relay('c', 10)));
    await relayAll(store);
    const { links } = await store.children('p', 'parent', { states: ['processed'], limit: 10 });
    expect(links).toEqual([{ child: { queue: 'c', id: 'a' }, state: 'processed', text: '"kept"' }]);
  });

  test('a failure that is delivered after the retry of the child still fails the parent', async () => {
    const { url, client, store } = await newScene();
    await addFamily(store, ['a'], 'parent', FAIL);
    const job = await claimOne(store, 'c', 'a');
    await withoutRelay(client, async () => {
      await settle(store, 'c', failed(job));
      await store.change('c', ['a'], { ...RETRY, from: 'failed' });
    });
    await holdFirst(url, async () => void (await store.relay('c', 10)));
    await relayAll(store);
    expect((await store.jobs('p', ['parent'])).jobs[0]?.doomedBy).toEqual({ queue: 'c', id: 'a' });
    expect(await linksOf(store)).toBe('1 pending, 0 processed, 0 failed, 0 ignored');
  });

  test('each message takes effect once', async () => {
    const { url, client, store } = await newScene();
    for (const parent of ['one', 'two', 'three'])
      await addFamily(
        store,
        Array.from({ length: 50 }, (_, n) => `${parent}-${n}`),
        parent,
      );
    const jobs = await claimSome(store, 'c', 150);
    await withoutRelay(client, async () => {
      for (const job of jobs) await settle(store, 'c', completed(job));
    });
    expect(await messages(client)).toHaveLength(150);
    const relayers = await Promise.all(Array.from({ length: 4 }, () => openStore({ url })));
    const delivered = await Promise.all(relayers.map(relayAll));
    expect(delivered.reduce((a, b) => a + b)).toBe(150);
    for (const parent of ['one', 'two', 'three']) {
      expect(await linksOf(store, parent)).toBe('0 pending, 50 processed, 0 failed, 0 ignored');
      expect(await releasesOf(store, parent)).toBe(1);
    }
    expect(await deadlocks(url)).toBe(0);
  });
});

describe('a message that is older than what it is about', () => {
  test('does not part a parent that was added again from its child', async () => {
    const { client, store } = await newScene();
    await addFamily(store, ['a']);
    await withoutRelay(client, async () => {
      await store.change('p', ['parent'], { kind: 'remove', children: true });
      const replies = await store.add('p', [newJob({ id: 'parent', waitsForChildren: true }), child('a')], newCall());
      expect(replies.map(({ status }) => status)).toEqual(['added', 'duplicate']);
    });
    await relayAll(store);
    expect((await store.jobs('c', ['a'])).jobs[0]?.parents).toEqual([{ queue: 'p', id: 'parent' }]);
    await settle(store, 'c', completed(await claimOne(store, 'c', 'a')));
    expect(await stateOf(store, 'p', 'parent')).toBe('waiting');
  });

  test('does not end the link of a child that was added again', async () => {
    const { client, store } = await newScene();
    await addFamily(store, ['a']);
    await withoutRelay(client, async () => {
      await store.change('c', ['a'], { kind: 'remove' });
      await store.add('p', [child('a')], newCall());
    });
    await relayAll(store);
    expect(await stateOf(store, 'p', 'parent')).toBe('waiting-children');
    await settle(store, 'c', completed(await claimOne(store, 'c', 'a')));
    expect(await stateOf(store, 'p', 'parent')).toBe('waiting');
  });

  test('does not fail a parent that was added again', async () => {
    const { client, store } = await newScene();
    await addFamily(store, ['a'], 'parent', FAIL);
    const job = await claimOne(store, 'c', 'a');
    await withoutRelay(client, async () => {
      await settle(store, 'c', failed(job));
      await store.change('p', ['parent'], { kind: 'remove' });
      await store.change('c', ['a'], { ...RETRY, from: 'failed' });
      await addFamilyAgain(store);
    });
    await relayAll(store);
    expect(await stateOf(store, 'p', 'parent')).toBe('waiting-children');
  });

  async function addFamilyAgain(store: PostgresStore): Promise<void> {
    await store.add('p', [newJob({ id: 'parent', waitsForChildren: true }), child('a', 'parent', FAIL)], newCall());
  }
});

test('adds of families and ends of their children in the opposite order deadlock nowhere', async () => {
  const url = await newDatabase();
  const stores = await Promise.all(Array.from({ length: 4 }, () => openStore({ url, max: 4 })));
  const [first] = stores as [PostgresStore];
  const parents = ['pa', 'pb', 'pc'];
  const kids = Array.from({ length: 12 }, (_, n) => `kid-${n}`);
  // Each queue has parents of the other one, and every child has several parents.
  const sharing = (queue: string, id: string, parentQueue: string): NewJob =>
    newJob({
      id,
      queue,
      shares: true,
      parents: shuffled(parents, id.length).map((parent) => ({ queue: parentQueue, id: parent })),
    });
  const tops = ['p', 'c'].flatMap((queue) => parents.map((id) => newJob({ id, queue, waitsForChildren: true })));
  await first.add('p', [...tops, sharing('c', 'first', 'p'), sharing('p', 'first', 'c')], newCall());
  const storm = async (store: PostgresStore, n: number): Promise<void> => {
    for (let turn = 1; turn <= 8; turn += 1) {
      const [here, there] = n % 2 === 0 ? ['p', 'c'] : ['c', 'p'];
      const jobs = shuffled(kids, n * 31 + turn).map((id) => sharing(there as string, id, here as string));
      await Promise.all([
        insist(() => store.add(here as string, jobs, newCall())),
        (async () => {
          const claimed = await insist(() => claimSome(store, here as string, 6));
          const ended = shuffled(
            claimed.filter(({ id }) => kids.includes(id)),
            turn,
          );
          if (ended.length > 0) await insist(() => store.settle(here as string, ended.map(completed)));
        })(),
        insist(() => store.relay(there as string, 20)),
      ]);
    }
  };
  await Promise.all(stores.map(storm));
  expect(await deadlocks(url)).toBe(0);
  await relayAll(first);
  // The counts are those of the links.
  const client = await newClient(url);
  const { rows } = await client.query(
    `SELECT f.* FROM holdfast.families f
     WHERE pending <> (SELECT count(*) FROM holdfast.links l WHERE l.queue = f.queue AND l.parent = f.parent AND state = 'pending')
       OR processed <> (SELECT count(*) FROM holdfast.links l WHERE l.queue = f.queue AND l.parent = f.parent AND state = 'processed')`,
  );
  expect(rows).toEqual([]);
  const ended = await client.query(`SELECT FROM holdfast.links WHERE state = 'processed'`);
  expect(ended.rowCount).toBeGreaterThan(10);
}, 60_000);

test.each([
  ['with a claim', true],
  ['alone', false],
])('a settle %s locks a child and a plain job in the order of their ids', async (_title, isClaiming) => {
  const { url, client, store } = await newScene();
  await store.add(
    'p',
    [newJob({ id: 'parent', waitsForChildren: true }), child('a'), newJob({ id: 'z', queue: 'c' })],
    newCall(),
  );
  const jobs = await claimSome(store, 'c', 2);
  expect(jobs.map(({ id }) => id)).toEqual(['a', 'z']);
  const lock = (id: string) => client.query('SELECT FROM holdfast.jobs WHERE id = $1 FOR UPDATE', [id]);
  await client.query('BEGIN');
  await lock('a');
  const session = jobs[0]?.token.split(':')[0] as string;
  const claim = isClaiming ? { session, seq: 2, count: 1 } : undefined;
  const settling = store.settle('c', jobs.toReversed().map(completed), { caller: session, seq: 2 }, claim);
  await until('the call waits', async () => (await blocked(client)) > 0);
  await lock('z');
  await client.query('COMMIT');
  expect((await settling).results).toEqual(['done', 'done']);
  expect(await deadlocks(url)).toBe(0);
});

describe('a family in a transaction of the user', () => {
  test('appears with the commit, in all queues', async () => {
    const { client, store } = await newScene();
    await client.query('BEGIN');
    const jobs = [newJob({ id: 'parent', waitsForChildren: true }), child('a')];
    const replies = await store.add('p', jobs, newCall(), client);
    expect(replies.map(({ status }) => status)).toEqual(['added', 'added']);
    expect(await Promise.all([stateOf(store, 'p', 'parent'), stateOf(store, 'c', 'a')])).toEqual(['missing', 'missing']);
    await client.query('COMMIT');
    expect(await linksOf(store)).toBe('1 pending, 0 processed, 0 failed, 0 ignored');
    await settle(store, 'c', completed(await claimOne(store, 'c', 'a')));
    expect(await stateOf(store, 'p', 'parent')).toBe('waiting');
  });

  test('leaves nothing after a rollback, and a refusal does not end the transaction', async () => {
    const { client, store } = await newScene();
    await client.query('BEGIN');
    const refused = await store.add('p', [child('a', 'nowhere')], newCall(), client);
    expect(refused).toEqual([{ id: 'a', status: 'noParent' }]);
    await store.add('p', [newJob({ id: 'parent', waitsForChildren: true }), child('a')], newCall(), client);
    await client.query('ROLLBACK');
    expect(await Promise.all([stateOf(store, 'p', 'parent'), stateOf(store, 'c', 'a')])).toEqual(['missing', 'missing']);
    expect((await client.query('SELECT FROM holdfast.links')).rowCount).toBe(0);
    expect((await store.status('p')).counts['waiting-children']).toBe(0);
  });

  test('holds up the messages to a parent that it uses, and no others', async () => {
    const { client, store } = await newScene();
    await addFamily(store, ['a'], 'held');
    await addFamily(store, ['b'], 'free');
    const jobs = await claimSome(store, 'c', 2);
    await client.query('BEGIN');
    await store.add('p', [child('late', 'held')], newCall(), client);
    await settle(store, 'c', ...jobs.map(completed));
    await until('the parent to wait', async () => (await stateOf(store, 'p', 'free')) === 'waiting');
    expect((await store.probe('c')).undone).toBe(true);
    await client.query('COMMIT');
    await relayAll(store);
    expect(await linksOf(store, 'held')).toBe('1 pending, 1 processed, 0 failed, 0 ignored');
    expect(await stateOf(store, 'p', 'held')).toBe('waiting-children');
  });
});

test('a parent cannot complete beside an add that gives it a child', async () => {
  const { client, store } = await newScene();
  await store.add('p', [newJob({ id: 'parent' })], newCall());
  await store.add('p', [child('first')], newCall());
  const job = await claimOne(store, 'p', 'parent');
  await settle(store, 'c', completed(await claimOne(store, 'c', 'first')));
  await client.query('BEGIN');
  await store.add('p', [child('second')], newCall(), client);
  const settling = store.settle('p', [completed(job)]);
  await until('the settle to wait for the add', async () => (await blocked(client)) === 1);
  await client.query('COMMIT');
  expect((await settling).results).toEqual(['pending']);
});

test('a process that waits for the parent is woken when another process ends the last child', async () => {
  const { url, store } = await newScene();
  await addFamily(store, ['a']);
  const job = await claimOne(store, 'c', 'a');
  const other = await openStore({ url });
  let wakes = 0;
  const stop = other.watch('p', () => (wakes += 1), 'jobs');
  await until('the watch to begin', () => wakes > 0);
  wakes = 0;
  await store.add('p', [newJob()], newCall());
  await until('the other process to hear of a job', () => wakes > 0);
  wakes = 0;
  await settle(store, 'c', completed(job));
  await until('the queue to be woken', () => wakes > 0);
  stop();
});
