// All verbs at once on the same few jobs, through a dozen connections: no transactions wait in a circle, and the log that was written meanwhile
// tells one legal way for each job, at whose end is what the tables hold.
import { expect, test } from 'vitest';
import type { Outcome } from '../../../src/job/outcome.js';
import type { ClaimedJob } from '../../../src/job/record.js';
import type { StoredEvent } from '../../../src/store/contract/index.js';
import type { PostgresStore } from '../../../src/store/postgres/index.js';
import { deadlocks, newClient, newDatabase, newJobs, newSession, openStore, shuffled } from './support.js';
import { retryFrom } from '../../../src/testing/conformance/samples.js';

const JOBS = 300;

type Pick = (below: number) => number;

/** The same numbers for the same seed. */
function random(seed: number): Pick {
  let state = seed * 7_919;
  return (below) => {
    state = (state * 1_103_515 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * below);
  };
}

/** Claims and settles, under a new session whenever another worker closed the last one. Returns the tokens under which it finished jobs. */
async function work(store: PostgresStore, name: string, pick: Pick): Promise<string[]> {
  const finished: string[] = [];
  let session = '';
  let jobs: ClaimedJob[] = [];
  for (let seq = 1; seq <= 60; seq += 1) {
    if (session === '') {
      session = `${name}.${seq}`;
      await store.openSession(newSession({ id: session, maxStalls: 1_000 }));
    }
    const outcomes = shuffled(jobs, seq).map((job) => outcomeOf(job, pick(10)));
    const claim = { session, seq, count: 25, ...(seq % 10 === 0 && { timedMs: 1 }) };
    const { results, claimed } = await store.settle('q', outcomes, { caller: session, seq }, claim);
    for (const [index, { kind, token }] of outcomes.entries()) {
      if (results[index] === 'done' && (kind === 'completed' || kind === 'failed')) finished.push(token);
    }
    // Some are forgotten: others close, sweep or revoke them.
    jobs = claimed?.jobs.slice(pick(4)) ?? [];
    if (claimed?.sessionAlive === false) session = '';
    await store.extend(
      'q',
      jobs.slice(5).map(({ id, token }) => ({ jobId: id, token, durationMs: pick(3) })),
    );
  }
  return finished;
}

function outcomeOf({ id, token }: ClaimedJob, choice: number): Outcome {
  const job = { jobId: id, token };
  if (choice === 0) return { ...job, kind: 'completed', value: '1', keep: { count: 0 } };
  if (choice <= 3) return { ...job, kind: 'completed', value: '1', keep: choice === 1 ? { count: 200 } : {} };
  if (choice <= 5) return { ...job, kind: 'failed', reason: 'r', stacktrace: '[]', keep: {} };
  if (choice <= 7) return { ...job, kind: 'retry', reason: 'r', stacktrace: '[]', delayMs: choice === 6 ? 1 : 0, lifo: true };
  return choice === 8 ? { ...job, kind: 'delay', delayMs: 1 } : { ...job, kind: 'release' };
}

/** Everything that comes from outside. */
async function disturb(store: PostgresStore, pick: Pick): Promise<void> {
  const some = (count: number): string[] => {
    const from = 1 + pick(JOBS - count);
    return shuffled(
      Array.from({ length: count }, (_, n) => String(from + n)),
      1 + pick(100),
    );
  };
  for (let round = 0; round < 25; round += 1) {
    const ids = some(60);
    await store.change('q', some(20), { kind: 'revoke', reason: 'test' });
    await store.change('q', ids, { kind: 'priority', priority: pick(3), lifo: true });
    await store.change('q', ids.slice(0, 20), { kind: 'promote' });
    await store.change('q', ids.slice(20), retryFrom('failed'));
    await store.write(
      'q',
      ids.flatMap((jobId) => [{ jobId, kind: 'progress', progress: '1' } as const, { jobId, kind: 'log', row: 'l' } as const]),
    );
    if (round % 10 === 0) await store.change('q', some(2), { kind: 'remove' });
    if (round % 10 === 5) await store.change('q', { lists: ['completed', 'delayed'], limit: 1 }, { kind: 'remove' });
    await store.change('q', { lists: ['completed'], limit: 30 }, retryFrom('completed'));
    await store.change('q', { lists: ['failed'], limit: 30 }, retryFrom('failed'));
    await store.change('q', { lists: ['delayed'], limit: 30 }, { kind: 'promote' });
    await store.sweep('q', 50);
    const sessions = (await store.sessions('q')).map(({ id }) => ({ queue: 'q', id, acked: 0 }));
    await store.renew(shuffled(sessions, 1 + pick(100)));
    await store.probe('q');
    if (round % 3 === 0)
      await store.closeSessions(shuffled(sessions, 1 + pick(100)).slice(0, 2), pick(2) === 0 ? 'crashed' : 'closed');
    if (sessions[0] !== undefined) await useNames(store, sessions[pick(sessions.length)]?.id ?? '', pick);
    await store.configure('q', { cap: round % 5 === 0 ? { maxActive: 80 } : null });
    // Not for a whole round: how much of the work is done would depend on who is how fast.
    if (round % 10 === 0) await store.configure('q', { paused: true });
    await store.configure('q', { paused: false });
    await store.configure('q', { blockedMs: pick(5) === 0 ? 1 : 0 });
  }
  await store.configure('q', { cap: null });
}

/** Takes names and lets go of some; the rest is left to others, who close or sweep the session. */
async function useNames(store: PostgresStore, session: string, pick: Pick): Promise<void> {
  const wishes = ['a', 'b', 'c', 'd'].map((name) => ({
    name,
    token: `${session}.${pick(1_000)}`,
    session,
    keepPlaceMs: pick(2) * 20,
  }));
  await store.acquire('q', shuffled(wishes, 1 + pick(100)));
  await store.letGo('q', shuffled(wishes, 1 + pick(100)).slice(pick(3)));
}

/** Which states an event may come from. */
const LEGAL: Record<string, string[]> = {
  active: ['waiting'],
  completed: ['active'],
  failed: ['active'],
  delayed: ['active'],
  waiting: ['added', 'active', 'delayed', 'completed', 'failed'],
};

/** Follows the log while it is written: no gap, and no move that does not begin where the one before it ended. */
class Reader {
  readonly states = new Map<string, string>();
  readonly trouble: string[] = [];
  readonly #store: PostgresStore;
  #last = 0;

  constructor(store: PostgresStore) {
    this.#store = store;
  }

  async follow(all: Promise<unknown>): Promise<void> {
    let over = false;
    void all.catch(() => undefined).finally(() => void (over = true));
    for (let end = false; !end; ) {
      end = over;
      const { events } = await this.#store.events('q', this.#last, 2_000);
      for (const event of events) this.#read(event);
      end &&= events.length === 0;
      if (events.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  #read({ id, name, jobId = '' }: StoredEvent): void {
    if (id !== this.#last + 1) this.trouble.push(`event ${id} comes after ${this.#last}`);
    this.#last = id;
    if (name === 'added') this.states.set(jobId, 'added');
    if (name === 'removed') this.states.delete(jobId);
    const legal = LEGAL[name];
    if (legal === undefined) return;
    const state = this.states.get(jobId) ?? 'nowhere';
    if (!legal.includes(state)) this.trouble.push(`event ${id}: job ${jobId} was ${state} and is ${name}`);
    this.states.set(jobId, name);
  }
}

/** What is counted, what is told and what is there are the same, and every lock has a session or an end. */
async function expectConsistent(url: string, store: PostgresStore, told: Map<string, string>): Promise<void> {
  const client = await newClient(url);
  const { rows } = await client.query<{ id: string; state: string; held: boolean }>(
    `SELECT id, (ARRAY['waiting', 'delayed', 'active', 'completed', 'failed'])[greatest(state, 1)] AS state,
       state <> 3 OR ends_at IS NOT NULL OR EXISTS (SELECT FROM holdfast.sessions s WHERE s.id = j.session) AS held
     FROM holdfast.jobs j`,
  );
  expect(rows.filter(({ id, state, held }) => told.get(id) !== state || !held)).toEqual([]);
  const found: Record<string, number> = { waiting: 0, delayed: 0, active: 0, completed: 0, failed: 0, 'waiting-children': 0 };
  for (const { state } of rows) found[state] = (found[state] ?? 0) + 1;
  const { waiting, prioritized, ...others } = (await store.status('q')).counts;
  expect({ ...others, waiting: waiting + prioritized }).toEqual(found);
}

test('all verbs at once never deadlock, and every job goes one legal way', async () => {
  const url = await newDatabase();
  const store = await openStore({ url, max: 12 });
  // A third of them have one of five keys.
  const jobs = newJobs(JOBS).map((job, n) => (n % 3 === 0 ? { ...job, lockKey: `k${n % 5}` } : job));
  await store.add('q', jobs, { caller: 'p', seq: 1 });
  const workers = [1, 2, 3, 4].map((n) => work(store, `w${n}`, random(n)));
  const all = Promise.all([...workers, ...[5, 6, 7, 8, 9, 10].map((n) => disturb(store, random(n)))]);
  const reader = new Reader(store);
  await Promise.all([all, reader.follow(all)]);
  const finished = (await Promise.all(workers)).flat();
  expect(await deadlocks(url)).toBe(0);
  // Each token finishes its job once, and a good part of the work was done in spite of all.
  expect(new Set(finished).size).toBe(finished.length);
  expect(finished.length).toBeGreaterThan(JOBS);
  expect(reader.trouble).toEqual([]);
  await expectConsistent(url, store, reader.states);
  await expectAllClaimable(store);
});

/** No job was left behind its key: each waiting job has its turn. */
async function expectAllClaimable(store: PostgresStore): Promise<void> {
  await store.configure('q', { blockedMs: 0 });
  for (const { id } of await store.sessions('q')) await store.closeSessions([{ queue: 'q', id }], 'closed');
  await store.openSession(newSession({ id: 'last' }));
  await store.change('q', { lists: ['delayed'], limit: JOBS }, { kind: 'promote' });
  const jobs: ClaimedJob[] = [];
  const ids = new Set<string>();
  const { waiting, prioritized } = (await store.status('q')).counts;
  for (let seq = 1; seq <= JOBS && ids.size < waiting + prioritized; seq += 1) {
    const outcomes = jobs.splice(0).map((job) => outcomeOf(job, 2));
    const { claimed } = await store.settle('q', outcomes, { caller: 'last', seq }, { session: 'last', seq, count: JOBS });
    jobs.push(...(claimed?.jobs ?? (await store.claim('q', { session: 'last', seq, count: JOBS })).jobs));
    for (const { id } of jobs) ids.add(id);
  }
  expect(ids.size).toBe(waiting + prioritized);
}
