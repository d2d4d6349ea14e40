// The steps of a job go when the job goes, by whatever way.
import { expect, test } from 'vitest';
import type { NewJob } from '../../../src/job/record.js';
import type { PostgresStore } from '../../../src/store/postgres/index.js';
import { completed, newClient, newDatabase, newJob, newSession, openStore } from './support.js';

const REMOVED = { opts: '{"removeOnFail":true}' };

interface Scene {
  store: PostgresStore;
  claim: () => Promise<{ id: string; token: string }>;
}

/** The ways in which the job `a` goes. */
const WAYS: [string, Partial<NewJob>, (scene: Scene) => Promise<unknown>][] = [
  ['a removal by id', {}, ({ store }) => store.change('q', ['a'], { kind: 'remove' })],
  ['a removal by selection', {}, ({ store }) => store.change('q', { lists: ['waiting'], limit: 9 }, { kind: 'remove' })],
  [
    'removeOnComplete',
    {},
    async ({ store, claim }) => {
      const { id, token } = await claim();
      await store.settle('q', [{ kind: 'completed', jobId: id, token, value: '1', keep: { count: 0 } }]);
    },
  ],
  [
    'a later job that is kept instead',
    {},
    async ({ store, claim }) => {
      const first = await claim();
      await store.settle('q', [completed(first as never)]);
      await store.add('q', [newJob({ id: 'b' })], { caller: 'p', seq: 9 });
      const { id, token } = await claim();
      await store.settle('q', [{ kind: 'completed', jobId: id, token, value: '1', keep: { count: 1 } }]);
    },
  ],
  ['a cancel with removeOnFail', REMOVED, ({ store }) => store.change('q', ['a'], { kind: 'cancel', reason: 'r' })],
  [
    'a cancel of its run with removeOnFail',
    REMOVED,
    async ({ store, claim }) => {
      const { id, token } = await claim();
      await store.change('q', ['a'], { kind: 'cancel', reason: 'r' });
      await store.settle('q', [{ kind: 'release', jobId: id, token }]);
    },
  ],
  [
    'a stall with removeOnFail',
    REMOVED,
    async ({ store, claim }) => {
      await claim();
      await store.closeSessions([{ queue: 'q', id: 's' }], 'crashed');
    },
  ],
  [
    'a job that replaces it',
    { delayMs: 60_000, deduplication: { id: 'd' } },
    ({ store }) =>
      store.add('q', [newJob({ delayMs: 60_000, deduplication: { id: 'd', replaceDelayed: true } as never })], {
        caller: 'p',
        seq: 9,
      }),
  ],
  [
    'its letter being sent back',
    { origin: { queue: 'o', id: 'a' } as never },
    ({ store }) => store.change('q', ['a'], { kind: 'send', to: 'o' }),
  ],
];

test.each(WAYS)('no step is left after %s', async (_name, job, way) => {
  const url = await newDatabase();
  const store = await openStore({ url });
  const admin = await newClient(url);
  const steps = async (): Promise<number> => (await admin.query('SELECT FROM holdfast.steps')).rowCount ?? 0;
  await store.openSession(newSession({ maxStalls: 0 }));
  await store.add('q', [newJob({ id: 'a', ...job })], { caller: 'p', seq: 1 });
  const names = ['one', 'two'];
  await store.write(
    'q',
    names.map((name) => ({ kind: 'step' as const, jobId: 'a', name, value: '1' })),
  );
  expect(await steps()).toBe(2);
  let seq = 0;
  const claim = async () => {
    const [got] = (await store.claim('q', { session: 's', seq: (seq += 1), count: 1 })).jobs;
    return got as { id: string; token: string };
  };
  await way({ store, claim });
  expect((await store.jobs('q', ['a'])).jobs[0]?.hasSteps).toBeUndefined();
  expect(await steps()).toBe(0);
});
