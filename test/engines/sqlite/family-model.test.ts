// Random calls on families in two queues. The SQLite store must do what the memory store does. HOLDFAST_MODEL_SEED repeats one sequence.
import { expect, it } from 'vitest';
import { FAILURE_INSTRUCTIONS, LINK_STATES } from '../../../src/job/family.js';
import type { Keep, Outcome } from '../../../src/job/outcome.js';
import type { ClaimedJob, NewJob } from '../../../src/job/record.js';
import type { Change, ListName, Store } from '../../../src/store/contract/index.js';
import { MemoryStore } from '../../../src/store/memory/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import { afterwards, newFile, newJob, newSession, openStore } from './support.js';

const QUEUES = ['one', 'two'];
const LETTERS = 'letters';
const IDS = ['a', 'b', 'c', 'd'];
const LISTS: ListName[] = ['waiting', 'prioritized', 'delayed', 'active', 'completed', 'failed', 'waiting-children'];
const KINDS = [
  ...['family', 'family', 'family', 'family', 'add', 'claim', 'settle', 'change', 'change', 'change', 'select', 'lose'],
  ...['run', 'run', 'run', 'run', 'run', 'run', 'run', 'run'],
];
const STEPS = 120;

type Random = <T>(...values: T[]) => T;

function randomOf(seed: number): Random {
  let state = seed;
  return (...values) => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return values[Math.floor((state / 2 ** 32) * values.length)] as (typeof values)[number];
  };
}

/** One store of the two, with the tokens that it has granted. */
class Side {
  readonly tokens = new Map<string, string>();
  #seq = 0;
  #sessions = 0;

  constructor(readonly store: Store) {}

  next(): number {
    return (this.#seq += 1);
  }

  async open(): Promise<void> {
    this.#sessions += 1;
    for (const queue of QUEUES)
      await this.store.openSession(
        newSession({ queue, id: this.session, durationMs: 10_000_000, maxStalls: this.#sessions % 2 }),
      );
  }

  get session(): string {
    return `s${this.#sessions}`;
  }

  async claim(
    queue: string,
    jobIds: string[] | undefined,
    count: number,
  ): Promise<{ reply: unknown; jobs: Omit<ClaimedJob, 'token'>[] }> {
    const request = { session: this.session, seq: this.next(), count, ...(jobIds !== undefined && { jobIds }) };
    const { jobs, ...reply } = await this.store.claim(queue, request);
    for (const { id, token } of jobs) this.tokens.set(`${queue} ${id}`, token);
    return { reply, jobs: jobs.map(({ token: _token, ...job }: ClaimedJob) => job) };
  }

  /** All that a caller can see. */
  async visible(): Promise<unknown> {
    const found: Record<string, unknown> = {};
    for (const queue of [...QUEUES, LETTERS]) {
      const { counts } = await this.store.status(queue);
      const lists = await Promise.all(
        LISTS.map((list) => this.store.jobs(queue, { lists: [list], start: 0, end: -1, asc: true })),
      );
      const jobs = lists.flatMap((reply) => reply.jobs);
      const children = await Promise.all(
        jobs.map(({ id }) => this.store.children(queue, id, { states: [...LINK_STATES], limit: 99 })),
      );
      const links = children.map((reply) => ({
        counts: reply.counts,
        links: reply.links.map((link) => JSON.stringify(link)).toSorted(),
      }));
      const { events } = await this.store.events(queue, 0, 100_000);
      // In which order the children of a removed parent go is the store's affair.
      const told = events.map(({ id: _id, ...event }) => JSON.stringify(event, Object.keys(event).toSorted())).toSorted();
      found[queue] = { counts, jobs, links, told };
    }
    return found;
  }
}

type Call = (side: Side) => Promise<unknown>;

/** Returns a call that both stores get. */
function callOf(random: Random): Call {
  const queue = random(...QUEUES);
  const ids = [random(...IDS), random(...IDS)];
  const kind = random(...KINDS);
  if (kind === 'family') {
    const jobs = familyOf(random, queue);
    return (side) => side.store.add(queue, jobs, { caller: 'p', seq: side.next() });
  }
  if (kind === 'run') {
    const [jobIds, outcome] = [random(undefined, undefined, ids), outcomeOf(random)];
    return async (side) => {
      const claimed = await side.claim(queue, jobIds, 1);
      const [jobId] = claimed.jobs.map(({ id }) => id);
      if (jobId === undefined) return claimed;
      const token = side.tokens.get(`${queue} ${jobId}`);
      return [claimed, await side.store.settle(queue, [{ ...outcome, jobId, token } as Outcome])];
    };
  }
  if (kind === 'add') {
    const jobs = Array.from({ length: random(1, 2, 3, 4) }, () => jobOf(random));
    return (side) => side.store.add(queue, jobs, { caller: 'p', seq: side.next() });
  }
  if (kind === 'claim') {
    const [jobIds, count] = [random(undefined, ids), random(1, 2, 4)];
    return (side) => side.claim(queue, jobIds, count);
  }
  if (kind === 'settle') {
    const [id, outcome] = [ids[0] as string, outcomeOf(random)];
    const isStale = random(false, false, false, false, true);
    return ({ store, tokens }) => {
      const token = isStale ? 'stale:1' : (tokens.get(`${queue} ${id}`) ?? 'none:1');
      return store.settle(queue, [{ ...outcome, jobId: id, token } as Outcome]);
    };
  }
  if (kind === 'change') {
    const change = changeOf(random);
    const from = change.kind === 'send' ? LETTERS : queue;
    return async ({ store }) => {
      const letters = (await store.jobs(LETTERS, { lists: ['waiting'], start: 0, end: 1, asc: true })).jobs;
      return store.change(from, change.kind === 'send' ? letters.map(({ id }) => id) : [...new Set(ids)], change);
    };
  }
  if (kind === 'select') {
    const removal = { kind: 'remove' as const, children: random(true, false), parentToo: random(true, false) };
    const change = random<Change>(removal, removal, { kind: 'send', to: queue });
    const selection = { lists: [random(...LISTS), random(...LISTS)], limit: random(1, 10) };
    return ({ store }) => store.change(change.kind === 'send' ? LETTERS : queue, selection, change as typeof removal);
  }
  return async (side) => {
    const { store, session } = side;
    await store.closeSessions([{ queue, id: session }], 'crashed');
    const others = QUEUES.filter((one) => one !== queue);
    await store.closeSessions(
      others.map((one) => ({ queue: one, id: session })),
      'closed',
    );
    await side.open();
  };
}

/** A parent, and children that follow each instruction. */
function familyOf(random: Random, queue: string): NewJob[] {
  const id = random(...IDS);
  const children = Array.from({ length: random(1, 2, 3) }, () => {
    const instruction = random<object>({}, ...Object.values(FAILURE_INSTRUCTIONS).map((onFailure) => ({ onFailure })));
    const shared = random({}, { shares: true });
    return { ...jobOf(random), queue: random(...QUEUES), parents: [{ queue, id, ...instruction }], ...shared };
  });
  const { parents: _none, ...root } = jobOf(random);
  return [{ ...root, queue, id, waitsForChildren: true }, ...children];
}

function jobOf(random: Random): NewJob {
  const parent = () => ({
    queue: random(...QUEUES),
    id: random(...IDS),
    ...random<object>({}, ...Object.values(FAILURE_INSTRUCTIONS).map((onFailure) => ({ onFailure }))),
  });
  return newJob({
    id: random(...IDS),
    priority: random(0, 0, 2),
    delayMs: random(0, 0, 0, 1_005),
    opts: random('{}', '{"removeOnFail":true}'),
    ...random({}, {}, { lockKey: 'k' }, { group: 'g' }),
    ...random({}, { queue: random(...QUEUES) }),
    ...random({}, { parents: [parent()] }, { parents: [parent()] }, { parents: [parent(), parent()], shares: true }),
    ...random({}, { waitsForChildren: true }),
    ...random({}, {}, { deadLetter: LETTERS }),
  });
}

function outcomeOf(random: Random): object {
  const keep = random<Keep>({}, {}, { count: 0 }, { count: 1 });
  return random<object>(
    { kind: 'completed', value: random('null', '"v"'), keep },
    { kind: 'completed', value: '"w"', keep },
    { kind: 'failed', reason: 'broken', stacktrace: '[]', keep },
    { kind: 'failed', reason: 'broken', stacktrace: '[]', keep, early: true },
    { kind: 'retry', reason: 'again', stacktrace: '[]', delayMs: 0, lifo: false },
    { kind: 'children' },
    { kind: 'children', child: { queue: random(...QUEUES), id: random(...IDS) } },
  );
}

function changeOf(random: Random): Change {
  const retry = { kind: 'retry' as const, from: random('completed' as const, 'failed' as const) };
  return random<Change>(
    { kind: 'remove' },
    { kind: 'remove', children: true },
    { ...retry, resetAttemptsMade: false, resetAttemptsStarted: false },
    { ...retry, resetAttemptsMade: true, resetAttemptsStarted: true },
    { kind: 'promote' },
    { kind: 'priority', priority: 1, lifo: false },
    { kind: 'unlink', child: { queue: random(...QUEUES), id: random(...IDS) } },
    { kind: 'send', to: random(...QUEUES) },
    { kind: 'revoke', reason: 'r' },
  );
}

const asked = Number(process.env['HOLDFAST_MODEL_SEED'] ?? Number.NaN);
const seeds = Number.isNaN(asked)
  ? Array.from({ length: Number(process.env['HOLDFAST_MODEL_RUNS'] ?? 12) }, (_, n) => n + 1)
  : [asked];

it.each(seeds)('families on SQLite do what those in memory do, in the random sequence HOLDFAST_MODEL_SEED=%d', async (seed) => {
  const clock = new ManualClock();
  const memory = new MemoryStore({ clock });
  await memory.open();
  afterwards(() => memory.close());
  const sides = [new Side(memory), new Side(await openStore({ path: newFile(), clock }))] as const;
  for (const side of sides) await side.open();
  const random = randomOf(seed);
  for (let step = 1; step <= STEPS; step += 1) {
    clock.advance(random(10, 10, 1_000));
    const call = callOf(random);
    const [expected, reply] = [await call(sides[0]), await call(sides[1])];
    const where = `seed ${seed}, step ${step}`;
    expect(reply, where).toEqual(expected);
    expect(await sides[1].visible(), where).toEqual(await sides[0].visible());
  }
});
