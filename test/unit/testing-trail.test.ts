// A failed test of the conformance suite says what the store was asked, and what it returned.
import { expect, test } from 'vitest';
import { MemoryStore } from '../../src/store/memory/index.js';
import { conformance, type ListQuery, ManualClock, type Store } from '../../src/testing/index.js';

/** Runs the test of the suite with this title on a memory store, and returns its failure. */
async function failureOf(title: string, broken: (store: MemoryStore) => Partial<Store>): Promise<Error | undefined> {
  const tests = new Map<string, () => Promise<void>>();
  const { capabilities } = new MemoryStore();
  conformance({
    describe: (_, body) => body(),
    it: (name, run) => tests.set(name, run),
    name: 'a broken store',
    capabilities,
    levels: ['inspecting'],
    clock: 'manual',
    async open() {
      const clock = new ManualClock();
      const store = new MemoryStore({ clock });
      await store.open();
      return { store: Object.assign(store, broken(store)), advance: async (ms) => clock.advance(ms), close: () => store.close() };
    },
  });
  const run = tests.get(title);
  expect(run, title).toBeDefined();
  return run?.().then(
    () => undefined,
    (error: Error) => error,
  );
}

const LISTED = 'list ranges are positions of each named list, not of all lists together';

/** A store that joins the lists, and then takes the positions of all of them together. */
function joining(store: MemoryStore): Partial<Store> {
  const right = store.jobs.bind(store) as Store['jobs'];
  const jobs = async (queue: string, query: string[] | ListQuery): Promise<unknown> => {
    if (Array.isArray(query)) return right(queue, query);
    const all = await right(queue, { ...query, start: 0, end: -1 });
    return { ...all, jobs: all.jobs.slice(query.start, query.end === -1 ? undefined : query.end + 1) };
  };
  return { jobs: jobs as Store['jobs'] };
}

test('a listing of a store that joins the lists before it takes positions fails, with the query and the reply', async () => {
  const failure = await failureOf(LISTED, joining);
  expect(failure?.message).toContain("{ lists: [ 'waiting', 'delayed', 'prioritized' ], start: 1, end: 2, asc: true }) returned");
  expect(failure?.message).toContain("id: 'w2'");
  expect(failure?.stack).toContain('The last calls of this test');
});

test('a listing of a right store passes', async () => {
  expect(await failureOf(LISTED, () => ({}))).toBeUndefined();
});

test('a failure shows the error of a call that the store refused', async () => {
  const failure = await failureOf('claim takes jobs first in, first out', () => ({
    claim: () => Promise.reject(new Error('the disk is on fire')),
  }));
  expect(failure?.message).toMatch(/ {2}claim\('conformance-.*seq: 1.*failed with the disk is on fire/);
});
