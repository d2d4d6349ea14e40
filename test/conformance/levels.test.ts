// Each level of the suite runs without the verbs of the levels that it does not build on.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Queue } from '../../src/queue/queue.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import {
  type Call,
  type ClaimRequest,
  conformance,
  HoldfastError,
  type Level,
  LEVELS,
  ManualClock,
  type Outcome,
  type Store,
  type Write,
} from '../../src/testing/index.js';
import { Worker } from '../../src/worker/worker.js';

const ALL = Object.keys(LEVELS) as Level[];

/** The verbs of each level. A field of a verb that belongs to another level than the verb is named in `levelsOf`. */
const VERBS: Partial<Record<Level, (keyof Store)[]>> = {
  core: [
    ...([
      'capabilities',
      'describe',
      'open',
      'close',
      'add',
      'claim',
      'settle',
      'openSession',
      'renew',
      'closeSessions',
    ] as const),
    ...(['sweep', 'jobs', 'locks', 'sessions', 'status', 'events'] as const),
  ],
  inspecting: ['queues'],
  control: ['configure', 'write', 'logs', 'forget'],
  changing: ['change'],
  'timed-locks': ['extend'],
  'named-locks': ['acquire', 'letGo'],
  schedules: ['schedule'],
  families: ['relay', 'children'],
  hints: ['probe', 'checkSessions'],
  waking: ['watch', 'onWarning'],
};

/** Returns the levels that a call needs. */
function levelsOf(verb: string, args: unknown[]): Level[] {
  const claim = (verb === 'claim' ? args[1] : verb === 'settle' ? args[3] : undefined) as ClaimRequest | undefined;
  const call = args[2] as Call | undefined;
  const outcomes = verb === 'settle' ? (args[1] as Outcome[]) : [];
  const found: [Level, boolean][] = [
    ...Object.entries(VERBS).map(([level, verbs]): [Level, boolean] => [level as Level, verbs.includes(verb as keyof Store)]),
    ['timed-locks', claim?.timedMs !== undefined],
    ['claims-by-id', claim?.jobIds !== undefined],
    ['control', claim?.limit !== undefined],
    ['lanes', claim?.lane !== undefined || (verb === 'settle' && call?.lane !== undefined)],
    ['keys', verb === 'add' && (args[1] as object[]).some((job) => 'lockKey' in job)],
    ['deduplication', verb === 'add' && (args[1] as object[]).some((job) => 'deduplication' in job)],
    ['deduplication', (verb === 'status' || verb === 'forget') && 'deduplication' in ((args[1] as object | undefined) ?? {})],
    ['schedules', verb === 'status' && 'schedules' in ((args[1] as object | undefined) ?? {})],
    ['groups', verb === 'add' && (args[1] as object[]).some((job) => 'group' in job)],
    ['groups', ['configure', 'jobs'].includes(verb) && 'group' in (args[1] as object)],
    ['groups', ['configure', 'status'].includes(verb) && 'groups' in ((args[1] as object | undefined) ?? {})],
    ['families', verb === 'add' && (args[1] as object[]).some(isOfFamily)],
    ['families', outcomes.some(({ kind }) => kind === 'children')],
    ['caps', verb === 'configure' && 'cap' in (args[1] as object)],
    ['rates', verb === 'configure' && 'rate' in (args[1] as object)],
    ['metrics', verb === 'configure' && 'metrics' in (args[1] as object)],
    ['metrics', verb === 'status' && ['metrics', 'priorities'].some((name) => name in ((args[1] as object | undefined) ?? {}))],
    ['own-events', verb === 'write' && (args[1] as Write[]).some(({ kind }) => kind === 'event')],
    ['named-locks', verb === 'locks' && 'names' in (args[1] as object)],
    ['keeping', outcomes.some((one) => 'keep' in one && (one.keep.ageMs !== undefined || (one.keep.count ?? 0) > 0))],
  ];
  return found.filter(([, needed]) => needed).map(([level]) => level);
}

const isOfFamily = (job: object): boolean => ['parents', 'waitsForChildren', 'deadLetter'].some((field) => field in job);

interface Attempt {
  title: string;
  run: () => Promise<void>;
}

/** Returns the tests of some levels on a store that has only the verbs of `has`, in memory that connections share. */
function testsOf(levels: Level[], has: readonly string[], broken?: keyof Store): Attempt[] {
  const tests: Attempt[] = [];
  const capabilities = { ...new MemoryStore({ lanes: 2 }).capabilities, shared: true, durable: true };
  conformance({
    describe: (_, body) => body(),
    it: (title, run) => tests.push({ title, run }),
    name: 'a part of a store',
    capabilities,
    clock: 'manual',
    levels,
    async open() {
      const clock = new ManualClock();
      const right = new MemoryStore({ clock, lanes: 2 });
      await right.open();
      const connect = async (): Promise<Store> => connection(right, { has, broken, capabilities });
      return {
        store: await connect(),
        peer: connect,
        reopen: connect,
        advance: async (ms) => clock.advance(ms),
        stepWall: (ms) => clock.stepWall(ms),
        close: () => right.close(),
      };
    },
  });
  return tests;
}

interface Part {
  has: readonly string[];
  broken: keyof Store | undefined;
  capabilities: Store['capabilities'];
}

/** A connection of its own to a store: its calls outside the levels are refused, and its close leaves the store open. */
function connection(right: MemoryStore, { has, broken, capabilities }: Part): Store {
  let closed = false;
  const call = (verb: keyof Store, inner: (...args: unknown[]) => unknown, args: unknown[]): unknown => {
    const missing = levelsOf(verb, args).filter((level) => !has.includes(level));
    if (missing.length > 0) throw new Error(`needs ${missing.join(' ')}`);
    if (verb === broken) throw new Error('broken');
    if (closed) return Promise.reject(new HoldfastError('STORE_CLOSED', 'This connection is closed.'));
    return inner.apply(right, args);
  };
  return new Proxy<Store>(right, {
    get(_, name: keyof Store) {
      const value = Reflect.get(right, name, right) as unknown;
      if (name === 'capabilities') return capabilities;
      if (name === 'close') return async () => void (closed = true);
      return typeof value === 'function' ? (...args: unknown[]) => call(name, value as () => unknown, args) : value;
    },
  });
}

/** Returns what is wrong, a line for each test that fails. */
async function failuresOf(tests: Attempt[]): Promise<string[]> {
  const failures: string[] = [];
  for (const { title, run } of tests) await run().catch((error: Error) => failures.push(`${title}: ${error.message}`));
  return failures;
}

/** Returns what is wrong with the first test that fails; the later tests do not run. */
async function firstFailureOf(tests: Attempt[]): Promise<string | undefined> {
  for (const test of tests) {
    const [failure] = await failuresOf([test]);
    if (failure !== undefined) return failure;
  }
  return undefined;
}

describe('the levels of the conformance suite', () => {
  // `together` needs all verbs, so nothing can be refused to it; memory.test.ts runs it.
  for (const level of ALL.filter((name) => name !== 'together')) {
    it(`runs ${level} on a store without the verbs of levels that ${level} does not build on`, async () => {
      const below = new Set(LEVELS[level].buildsOn.flatMap((base) => testsOf([base], []).map(({ title }) => title)));
      const tests = testsOf([level], [...LEVELS[level].buildsOn, level]).filter(({ title }) => !below.has(title));
      expect(tests.length).toBeGreaterThan(level === 'core' ? 120 : 1);
      expect(await failuresOf(tests)).toEqual([]);
    });
  }

  for (const verb of VERBS.core?.slice(4) ?? []) {
    it(`fails core on a store whose verb ${verb} throws`, async () => {
      expect(await firstFailureOf(testsOf(['core'], ['core'], verb))).toContain(': broken');
    });
  }

  it('fails a level on a store without the verbs of that level', async () => {
    expect(await firstFailureOf(testsOf(['named-locks'], ['core']))).toContain(': needs named-locks');
  });

  it('runs every level and every test without the option', () => {
    const titles = (levels?: Level[]) => testsOf(levels as Level[], []).map(({ title }) => title);
    expect(titles()).toEqual(titles(ALL));
    expect(titles(['together'])).toEqual(titles());
  });

  it('has only levels that build on core, on known levels and on all levels below these', () => {
    for (const [name, { buildsOn }] of Object.entries(LEVELS) as [Level, { buildsOn: readonly Level[] }][]) {
      expect(buildsOn.includes('core')).toBe(name !== 'core');
      for (const below of buildsOn) expect(buildsOn).toEqual(expect.arrayContaining([...LEVELS[below].buildsOn]));
    }
  });

  it('has in core and waking all that a queue and a worker need to add, delay, retry, run and list jobs', async () => {
    const right = new MemoryStore();
    await right.open();
    const connectionTo = (has: Level[]) => connection(right, { has, broken: undefined, capabilities: right.capabilities });
    expect(() => connectionTo(['core']).watch('mail', () => {})).toThrow('needs waking');
    // A worker names its lane, also if it has only one: a store without lanes ignores it.
    const store = connectionTo(['core', 'waking', 'lanes']);
    const errors: Error[] = [];
    const queue = new Queue('mail', { connection: store });
    const worker = new Worker(
      'mail',
      async (job) => {
        if (job.name === 'twice' && job.attemptsMade === 0) throw new Error('the first attempt fails');
        return job.name;
      },
      { connection: store },
    );
    queue.on('error', (error) => void errors.push(error));
    worker.on('error', (error) => void errors.push(error));
    const done = new Promise<void>((resolve) => worker.on('completed', ({ name }) => name === 'twice' && resolve()));
    await queue.addBulk([{ name: 'once', data: {} }]);
    await queue.add('twice', {}, { attempts: 2, backoff: 5, delay: 5 });
    await done;
    await worker.close();
    expect((await queue.getCompleted()).map(({ name }) => name).sort()).toEqual(['once', 'twice']);
    await queue.close();
    await right.close();
    expect(errors).toEqual([]);
  });

  it('has the levels that docs/contributing/writing-a-store.md lists', () => {
    const page = readFileSync(new URL('../../docs/contributing/writing-a-store.md', import.meta.url), 'utf8');
    const row = ([name, { buildsOn, needs }]: [string, { buildsOn: readonly string[]; needs: string }]): string =>
      `| \`${name}\` | ${name === 'together' ? 'all others ' : buildsOn.length > 0 ? `${buildsOn.join(', ')} ` : ''}| ${needs} |`;
    expect(page.match(/^\| `[a-z-]+` \|.*$/gm)).toEqual(Object.entries(LEVELS).map(row));
  });

  it('refuses a level that it does not have, and an empty list', () => {
    const error = { code: 'INVALID_OPTION', message: expect.stringContaining('The levels are: core, inspecting') as string };
    expect(() => testsOf(['cores' as Level], [])).toThrow(expect.objectContaining(error));
    expect(() => testsOf(['toString' as Level], [])).toThrow(expect.objectContaining(error));
    expect(() => testsOf([], [])).toThrow(expect.objectContaining(error));
  });
});
