// The sync store: `add` answers when its jobs were run once, and never waits for what cannot come.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Outcome } from '../../../src/job/outcome.js';
import type { ClaimedJob, NewJob } from '../../../src/job/record.js';
import type { ClaimRequest } from '../../../src/store/contract/index.js';
import { SyncStore } from '../../../src/store/memory/index.js';
import { newJob as job } from '../../unit/store-samples.js';

vi.mock('../../../src/runtime/timers.js', () => import('../../support/wait/process-timers.js'));

const QUEUE = 'q';
const completed = ({ id, token }: ClaimedJob): Outcome => ({ kind: 'completed', jobId: id, token, value: '1', keep: {} });

let store: SyncStore;
let callers = 0;
let stops: (() => void)[] = [];

beforeEach(() => {
  store = new SyncStore();
});

afterEach(async () => {
  for (const stop of stops) stop();
  stops = [];
  await store.close();
  vi.useRealTimers();
});

function add(...jobs: Partial<NewJob>[]): Promise<unknown> {
  return store.add(QUEUE, jobs.map(job), { caller: `p${++callers}`, seq: 1 });
}

async function openSession(): Promise<string> {
  const id = `s${++callers}`;
  await store.openSession({
    queue: QUEUE,
    id,
    owner: { host: 'h', pid: 1, name: 'n', instance: 'i' },
    durationMs: 60_000,
    maxStalls: 1,
    slots: 1,
  });
  return id;
}

/** Its patience never ends, so that an answer cannot come from that. */
function endlessPatience(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
}

/** A worker in small: claims all there is whenever it is woken, a turn of the loop later, and settles what each handler says. */
async function work(handler: (job: ClaimedJob) => Promise<Outcome> | Outcome, wish: Partial<ClaimRequest> = {}): Promise<string> {
  const session = await openSession();
  let seq = 0;
  let scheduled = false;
  const turn = async (): Promise<void> => {
    scheduled = false;
    const { jobs } = await store.claim(QUEUE, { session, seq: ++seq, count: 100, ...wish });
    await Promise.all(jobs.map(async (claimed) => store.settle(QUEUE, [await handler(claimed)])));
  };
  const stop = store.watch(QUEUE, () => {
    if (scheduled) return;
    scheduled = true;
    setImmediate(() => void turn().catch(() => undefined));
  });
  stops.push(stop);
  return session;
}

async function states(): Promise<string[]> {
  const lists = ['waiting', 'delayed', 'active', 'completed', 'failed'] as const;
  const { jobs } = await store.jobs(QUEUE, { lists: [...lists], start: 0, end: -1, asc: true });
  return jobs.map(({ state }) => state);
}

describe('add on sync: waits', () => {
  test('until every one of its jobs was run', async () => {
    await work(async (claimed) => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      return completed(claimed);
    });
    await add({}, {}, {});
    expect(await states()).toEqual(['completed', 'completed', 'completed']);
  });

  const endings: Record<string, { outcome: (claimed: ClaimedJob) => Outcome; state: string[] }> = {
    'failed for good': {
      outcome: ({ id, token }) => ({ kind: 'failed', jobId: id, token, reason: 'r', stacktrace: '[]', keep: {} }),
      state: ['failed'],
    },
    'completed and removed': {
      outcome: ({ id, token }) => ({ kind: 'completed', jobId: id, token, value: '1', keep: { count: 0 } }),
      state: [],
    },
    'to be retried later': {
      outcome: ({ id, token }) => ({
        kind: 'retry',
        jobId: id,
        token,
        reason: 'r',
        stacktrace: '[]',
        delayMs: 60_000,
        lifo: false,
      }),
      state: ['delayed'],
    },
    'put off by its handler': {
      outcome: ({ id, token }) => ({ kind: 'delay', jobId: id, token, delayMs: 60_000 }),
      state: ['delayed'],
    },
  };
  for (const [ending, { outcome, state }] of Object.entries(endings)) {
    test(`until its job was ${ending}`, async () => {
      await work(outcome);
      await add({});
      expect(await states()).toEqual(state);
    });
  }

  test('for one run only, even when the retry starts at once', async () => {
    const session = await openSession();
    stops.push(store.watch(QUEUE, () => {}));
    const adding = add({});
    const [first] = (await store.claim(QUEUE, { session, seq: 1, count: 1 })).jobs as [ClaimedJob];
    const retry: Outcome = {
      kind: 'retry',
      jobId: first.id,
      token: first.token,
      reason: 'r',
      stacktrace: '[]',
      delayMs: 0,
      lifo: false,
    };
    const { claimed } = await store.settle(QUEUE, [retry], { caller: session, seq: 2 }, { session, seq: 2, count: 1 });
    expect(claimed?.jobs).toHaveLength(1);
    await adding;
    expect(await states()).toEqual(['active']);
  });

  test('beyond its timeout for a job that runs', async () => {
    await work(async (claimed) => {
      await new Promise((resolve) => setTimeout(resolve, 400));
      return completed(claimed);
    });
    await add({});
    expect(await states()).toEqual(['completed']);
  });

  test('for a worker whose loop was blocked', async () => {
    await work((claimed) => completed(claimed));
    // From here, timers that are due come before the turn that the worker has scheduled.
    await new Promise((resolve) => setImmediate(resolve));
    const adding = add({});
    for (let n = 0; n < 10; n++) await Promise.resolve();
    const end = performance.now() + 300;
    while (performance.now() < end);
    await adding;
    expect(await states()).toEqual(['completed']);
  });

  test('for a handler that adds to its own queue and waits for that', async () => {
    await work(async (claimed) => {
      if (claimed.name === 'parent') await add({ name: 'child' }, { name: 'child' });
      return completed(claimed);
    });
    await add({ name: 'parent' });
    const { jobs: finished } = await store.jobs(QUEUE, { lists: ['completed'], start: 0, end: -1, asc: true });
    expect(finished.map(({ name }) => name)).toEqual(['child', 'child', 'parent']);
  });
});

describe('add on sync: resolves at once', () => {
  beforeEach(endlessPatience);

  test('without a session, or without a watcher', async () => {
    stops.push(store.watch(QUEUE, () => {}));
    await add({});
    stops.pop()?.();
    await openSession();
    await add({});
    expect(await states()).toEqual(['waiting', 'waiting']);
  });

  test('when the only session was closed', async () => {
    const session = await work((claimed) => completed(claimed));
    await store.closeSessions([{ queue: QUEUE, id: session }], 'closed');
    await add({});
    expect(await states()).toEqual(['waiting']);
  });

  test('for delayed jobs and duplicates', async () => {
    await add({ id: 'known' });
    await openSession();
    stops.push(store.watch(QUEUE, () => {}));
    await add({ delayMs: 60_000 }, { id: 'known' });
    expect(await states()).toEqual(['waiting', 'delayed']);
  });

  test('when the queue is paused', async () => {
    await work((claimed) => completed(claimed));
    await store.configure(QUEUE, { paused: true });
    await add({});
    expect(await states()).toEqual(['waiting']);
  });

  test('when the queue is rate limited, by hand or by its workers', async () => {
    await work((claimed) => completed(claimed), { limit: { max: 1, durationMs: 60_000 } });
    await add({});
    await add({});
    expect(await states()).toEqual(['waiting', 'completed']);
    await store.configure(QUEUE, { blockedMs: 0 });
    await store.configure(QUEUE, { blockedMs: 60_000 });
    await add({});
    expect(await states()).toEqual(['waiting', 'waiting', 'completed']);
  });
});

describe('add on sync: stops waiting', () => {
  /** An `add` that waits for somebody who holds a session and never claims. */
  async function waiting(): Promise<Promise<unknown>[]> {
    await openSession();
    stops.push(store.watch(QUEUE, () => {}));
    let answered = false;
    const adding = add({}).then(() => {
      answered = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(answered).toBe(false);
    return [adding];
  }

  test('when the queue is paused meanwhile', async () => {
    endlessPatience();
    const adding = await waiting();
    await store.configure(QUEUE, { paused: true });
    await Promise.all(adding);
  });

  test('when its job is removed', async () => {
    endlessPatience();
    const adding = await waiting();
    await store.change(QUEUE, ['1'], { kind: 'remove' });
    await Promise.all(adding);
  });

  test('when the last worker goes', async () => {
    endlessPatience();
    const adding = await waiting();
    const refs = (await store.sessions(QUEUE)).map(({ id }) => ({ queue: QUEUE, id }));
    await store.closeSessions(refs, 'closed');
    await Promise.all(adding);
  });

  test('when the store is closed', async () => {
    endlessPatience();
    const adding = await waiting();
    await store.close();
    await Promise.all(adding);
  });

  test('when no worker claims for a while', async () => {
    await Promise.all(await waiting());
    expect(await states()).toEqual(['waiting']);
  });
});

test('sync: describes its capabilities', () => {
  expect(store.capabilities).toEqual({
    engine: 'sync',
    shared: false,
    durable: false,
    crashHints: false,
    inline: true,
    transactions: false,
    families: true,
  });
  expect(store.describe()).toBeUndefined();
});
