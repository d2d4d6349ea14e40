// What may happen to a queue, as plain data, so that a failing sequence can be shrunk, printed and replayed. A step names jobs, sessions and
// tokens by the part that they play; cast.ts turns it into a call of the contract.
import fc from 'fast-check';
import type { GroupRules, ListName, QueueSettings, Write } from '../../src/store/contract/index.js';

/** Jobs that may become drafts are called e and f. */
export const JOBS = ['a', 'b', 'c', 'd', 'e', 'f', '1', '2', '3'] as const;
/** Deduplication ids. Only the first one has drafts: in which order the drafts of several owners come is the store's affair. */
export const UNIQUE = ['u', 'v'] as const;
export const GROUPS = ['g', 'h'] as const;
export const SESSIONS = ['s1', 's2', 's3'] as const;
export const LOCKS = ['x', 'y'] as const;
export const STEP_NAMES = ['n', 'm'] as const;
export const LISTS: readonly ListName[] = ['waiting', 'prioritized', 'delayed', 'active', 'completed', 'failed'];

/** Between two steps. */
export const STEP_MS = 10;
// Time passes in steps of ten, and nothing lasts a multiple of it: the contract does not say on which side of the very moment an end
// lies, and a store that orders by the microsecond puts it some of them later. Sequences stay below the ten minutes for which stores
// remember calls.
/** Less than a step. */
const BRIEF_MS = 8;
const SHORT_MS = 1_005;
const LONG_MS = 2_005;
const FAR_MS = 3_600_005;
const MINUTE_MS = 61_000;

/** The last token that was granted for the job, the one before, the last one of another job, one that never was, and none at all. */
const tokens = fc.oneof(
  { weight: 8, arbitrary: fc.constant('last') },
  { weight: 2, arbitrary: fc.constantFrom('before', 'foreign') },
  { weight: 2, arbitrary: fc.constantFrom('unknown', 'empty') },
) as fc.Arbitrary<TokenPart>;

export type TokenPart = 'last' | 'before' | 'foreign' | 'unknown' | 'empty';

const job = fc.constantFrom(...JOBS);
const jobs = fc.array(job, { minLength: 1, maxLength: 3 });
const session = fc.constantFrom(...SESSIONS);
const durationMs = fc.constantFrom(FAR_MS, FAR_MS, SHORT_MS, LONG_MS);
const delayMs = fc.constantFrom(0, SHORT_MS, LONG_MS, FAR_MS);
const priority = fc.constantFrom(0, 0, 1, 2);
const lifo = fc.boolean();
const maybe = <T>(arbitrary: fc.Arbitrary<T>, freq = 2): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined, freq });
const several = <T>(arbitrary: fc.Arbitrary<T>, maxLength = 3): fc.Arbitrary<T[]> =>
  fc.array(arbitrary, { minLength: 1, maxLength });

const newJob = fc.record({
  id: maybe(fc.constantFrom('a', 'b', 'c', 'd'), 4),
  priority,
  delayMs: fc.constantFrom(0, 0, 0, SHORT_MS, LONG_MS),
  lifo: fc.constantFrom(false, false, true),
  lockKey: maybe(fc.constantFrom('k', 'l'), 2),
  group: maybe(fc.constantFrom(...GROUPS), 3),
  deduplication: maybe(
    fc.record({
      id: fc.constantFrom(...UNIQUE),
      ttlMs: maybe(fc.constantFrom(SHORT_MS, LONG_MS), 3),
      extend: fc.boolean(),
      replaceDelayed: fc.boolean(),
      keepLastIfActive: fc.boolean(),
    }),
    3,
  ),
  // Not a count: of those that fail in one sweep, which would stay depends on their order.
  opts: fc.constantFrom('{}', '{}', '{"removeOnFail":true}'),
});

const claiming = fc.record({
  count: fc.constantFrom(1, 2, 4),
  jobIds: fc.option(jobs, { nil: undefined, freq: 4 }),
  by: maybe(fc.constant('worker')),
  timedMs: fc.option(durationMs, { nil: undefined, freq: 4 }),
  limit: fc.option(fc.record({ max: fc.constantFrom(1, 2), durationMs: fc.constantFrom(SHORT_MS, LONG_MS) }), {
    nil: undefined,
    freq: 5,
  }),
});

const PLAIN: Claiming = { count: 1, jobIds: undefined, by: undefined, timedMs: undefined, limit: undefined };

const keep = fc.record({ count: fc.constantFrom(0, 1, 2), ageMs: fc.constantFrom(5, SHORT_MS) }, { requiredKeys: [] });
const owned = { job, token: tokens };
const outcome = fc.oneof(
  fc.record({ kind: fc.constantFrom('completed' as const, 'failed' as const), ...owned, keep }),
  fc.record({ kind: fc.constant('retry' as const), ...owned, delayMs, lifo }),
  fc.record({
    kind: fc.constant('delay' as const),
    ...owned,
    delayMs: fc.constantFrom(SHORT_MS, FAR_MS),
    step: maybe(fc.constantFrom(...STEP_NAMES)),
    awaits: maybe(fc.constantFrom(...STEP_NAMES)),
  }),
  fc.record({ kind: fc.constantFrom('release' as const, 'return' as const), ...owned }),
);

const extension = fc.record({
  ...owned,
  durationMs: fc.oneof({ weight: 4, arbitrary: durationMs }, { weight: 1, arbitrary: fc.constant(BRIEF_MS) }),
  alone: maybe(fc.constant(true as const)),
});

const write = fc.record({
  job,
  token: maybe(tokens, 2),
  kind: fc.constantFrom(
    ...(['data', 'progress', 'log', 'clearLogs', 'event', 'step', 'step', 'step'] as const satisfies Write['kind'][]),
  ),
  keep: maybe(fc.constantFrom(0, 1, 2)),
  name: fc.constantFrom(...STEP_NAMES),
});

const retry = fc.record({
  kind: fc.constant('retry' as const),
  from: fc.constantFrom('completed' as const, 'failed' as const),
  resetAttemptsMade: fc.boolean(),
  resetAttemptsStarted: fc.boolean(),
});
const retryFromStep = fc.record({
  kind: fc.constant('retry' as const),
  from: fc.constantFrom('completed' as const, 'failed' as const),
  resetAttemptsMade: fc.boolean(),
  resetAttemptsStarted: fc.boolean(),
  fromStep: fc.constantFrom(...STEP_NAMES),
});
const cancel = fc.constant({ kind: 'cancel' as const, reason: 'cancelled: model' });
const promote = fc.constant({ kind: 'promote' as const });
const change = fc.oneof(
  { weight: 3, arbitrary: retry },
  { weight: 3, arbitrary: promote },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('delay' as const), delayMs }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('priority' as const), priority, lifo }) },
  { weight: 2, arbitrary: fc.constant({ kind: 'remove' as const }) },
  { weight: 6, arbitrary: fc.constant({ kind: 'revoke' as const, reason: 'operator' }) },
  { weight: 2, arbitrary: retryFromStep },
  { weight: 3, arbitrary: cancel },
);

const selection = fc.record({
  // Of one list: several "may go in steps", each of which tells how many it has cleaned.
  list: fc.constantFrom(...LISTS),
  olderThanMs: maybe(fc.constantFrom(0, SHORT_MS)),
  limit: fc.constantFrom(1, 2, 100),
});

const paused = fc.boolean();
const blockedMs = fc.constantFrom(0, SHORT_MS);
const cap = fc.option(fc.record({ maxActive: fc.constantFrom(0, 1, 2, 3) }), { freq: 2 });
const maxActive = fc.constantFrom(0, 1, 2);
const metrics = fc.option(fc.record({ points: fc.constantFrom(1, 3) }), { freq: 5 });
const rate = fc.record({ max: fc.constantFrom(1, 2), durationMs: fc.constantFrom(SHORT_MS, LONG_MS) });
const groups: fc.Arbitrary<GroupRules | null> = fc.option(fc.record({ maxActive, rate }, { requiredKeys: [] }), {
  freq: 3,
});
const group = fc.record(
  {
    key: fc.constantFrom(...GROUPS),
    paused: fc.constantFrom(false, false, true),
    maxActive: fc.option(maxActive, { freq: 2 }),
    rate: fc.option(rate, { freq: 2 }),
    blockedMs,
  },
  { requiredKeys: ['key'] },
);
/** Several settings at once are rare: most of them stop claims, and other steps need claimed jobs. */
const settings: fc.Arbitrary<QueueSettings> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ paused }) },
  { weight: 2, arbitrary: fc.record({ blockedMs }) },
  { weight: 4, arbitrary: fc.record({ cap }) },
  { weight: 2, arbitrary: fc.record({ groups }) },
  { weight: 2, arbitrary: fc.record({ group }) },
  { weight: 3, arbitrary: fc.record({ rate: fc.option(rate, { freq: 3 }) }) },
  { weight: 3, arbitrary: fc.record({ metrics }) },
  { weight: 1, arbitrary: fc.record({ paused, blockedMs, cap }) },
  { weight: 1, arbitrary: fc.record({ cap, groups, group }) },
);

const lock = fc.constantFrom(...LOCKS);
/**
 * `fresh`: not the one that this session made before. A store may keep a place for somewhat longer than asked, so that those who ask again
 * have nothing to write: by less than a step.
 */
const wish = fc.record({ name: lock, session, fresh: fc.boolean(), keepPlaceMs: fc.constantFrom(0, BRIEF_MS, FAR_MS) });

const look = fc.oneof(
  fc.record({ at: fc.constant('status' as const) }),
  fc.record({
    at: fc.constant('metrics' as const),
    kind: fc.constantFrom('completed' as const, 'failed' as const),
    start: fc.constantFrom(0, 1, -1),
    end: fc.constantFrom(-1, 0, 2),
  }),
  fc.record({ at: fc.constant('jobs' as const), jobs }),
  fc.record({
    at: fc.constant('list' as const),
    lists: fc.uniqueArray(fc.constantFrom(...LISTS), { minLength: 1, maxLength: 3 }),
    start: fc.constantFrom(0, 1, -2),
    end: fc.constantFrom(-1, 0, 2, -2),
    asc: fc.boolean(),
  }),
  fc.record({
    at: fc.constant('events' as const),
    after: maybe(fc.nat(12)),
    limit: fc.constantFrom(1, 3, 1_000),
  }),
  fc.record({ at: fc.constant('group' as const), group: fc.constantFrom(...GROUPS), start: fc.constantFrom(0, 1, -2) }),
  fc.record({ at: fc.constant('logs' as const), job, start: fc.constantFrom(0, 1, -1), asc: fc.boolean() }),
  fc.record({ at: fc.constant('lockOf' as const), job }),
  fc.record({ at: fc.constant('owned' as const), session }),
  fc.record({ at: fc.constantFrom('sessions' as const, 'namedLocks' as const) }),
);

/** A lost reply: the same call once more. */
const again = fc.constantFrom(false, false, false, true);

/** The connection that it goes through, where a store has more than one. */
const via = fc.constantFrom(0 as const, 1 as const);

function weighted<const V extends string, F extends Record<string, unknown>>(
  weight: number,
  verb: V,
  fields: { [K in keyof F]: fc.Arbitrary<F[K]> },
) {
  return {
    weight,
    arbitrary: fc.record({ verb: fc.constant(verb), via, ...fields }) as fc.Arbitrary<{ verb: V; via: 0 | 1 } & F>,
  };
}

const step = fc.oneof(
  weighted(6, 'add', { producer: fc.constantFrom('p1', 'p2'), jobs: several(newJob), again }),
  weighted(3, 'open', { session, durationMs, maxStalls: fc.nat(2), slots: fc.nat(3) }),
  weighted(8, 'claim', { session, claim: claiming, again }),
  weighted(8, 'settle', {
    outcomes: several(outcome),
    caller: fc.constantFrom(undefined, 'settler', ...SESSIONS, ...SESSIONS),
    claim: maybe(claiming),
    again,
  }),
  weighted(4, 'renew', { sessions: several(session), slots: maybe(fc.nat(3)), acked: fc.boolean() }),
  weighted(1, 'close', { sessions: several(session, 2), how: fc.constantFrom('closed' as const, 'crashed' as const) }),
  weighted(4, 'sweep', { limit: fc.constantFrom(1, 2, 100, 100) }),
  weighted(3, 'extend', { extensions: several(extension) }),
  weighted(3, 'write', { writes: several(write) }),
  weighted(9, 'change', { jobs, change }),
  weighted(3, 'select', { selection, change: fc.oneof(retry, promote, cancel, fc.constant({ kind: 'remove' as const })) }),
  weighted(6, 'configure', { settings }),
  weighted(5, 'acquire', { wishes: several(wish) }),
  weighted(2, 'letGo', { locks: several(fc.record({ name: lock, session })) }),
  weighted(2, 'forget', { events: maybe(fc.nat(5)) }),
  weighted(1, 'forgetEntries', { ids: several(fc.constantFrom(...UNIQUE)), ownedBy: maybe(job) }),
  // A minute is rare: sequences stay below ten.
  weighted(5, 'pass', { ms: fc.constantFrom(500, 1_000, 1_000, 2_000, 2_000, 5_000, MINUTE_MS) as fc.Arbitrary<number> }),
  weighted(6, 'look', { look }),
);

/** A session that claims and is never heard of again: what chance alone would seldom put together. */
const crash = fc
  .record({
    session,
    durationMs: fc.constantFrom(SHORT_MS, LONG_MS),
    maxStalls: fc.nat(2),
    slots: fc.nat(3),
    claim: claiming,
    limit: fc.constantFrom(1, 2),
  })
  .map(({ claim, limit, ...opened }): Step[] => [
    { verb: 'open', via: 0, ...opened },
    { verb: 'claim', via: 1, session: opened.session, claim: { ...claim, count: 4 }, again: false },
    { verb: 'pass', via: 0, ms: 5_000 },
    { verb: 'sweep', via: 1, limit },
  ]);

/** Jobs that are claimed together and end together, in whatever ways. */
const work = fc
  .record({ session, outcomes: fc.array(outcome, { minLength: 3, maxLength: 3 }), claim: maybe(claiming), again })
  .map(({ session: worker, outcomes, claim, again: repeated }): Step[] => [
    { verb: 'claim', via: 0, session: worker, claim: { ...PLAIN, count: 4, jobIds: ['a', 'b', 'c'] }, again: false },
    {
      verb: 'settle',
      via: 1,
      outcomes: outcomes.map((one, index) => ({ ...one, job: JOBS[index] ?? 'a', token: 'last' })),
      caller: worker,
      claim,
      again: repeated,
    },
  ]);

/** A window that is opened, a block that begins and ends within it, and claims afterwards, of the queue or of a group. */
const limits = fc
  .record({ session, key: maybe(fc.constantFrom(...GROUPS), 2), max: fc.constantFrom(1, 2) })
  .map(({ session: worker, key, max }): Step[] => {
    const set = (one: Pick<QueueSettings, 'rate' | 'blockedMs'>): Step => ({
      verb: 'configure',
      via: 0,
      settings: (key === undefined ? one : { group: { key, ...one } }) as QueueSettings,
    });
    const claim: Step = { verb: 'claim', via: 1, session: worker, claim: { ...PLAIN, count: 4 }, again: false };
    const wait = (ms: number): Step => ({ verb: 'pass', via: 0, ms });
    const begin = [set({ rate: { max, durationMs: LONG_MS } }), claim, set({ blockedMs: SHORT_MS })];
    return [...begin, wait(1_000), wait(500), claim, wait(1_000), claim];
  });

/** Two jobs that are claimed together and end minutes apart, in a queue that counts. */
const minutes = fc
  .record({
    session,
    kind: fc.constantFrom('completed' as const, 'failed' as const),
    ms: fc.constantFrom(MINUTE_MS, 2 * MINUTE_MS),
  })
  .map(({ session: worker, kind, ms }): Step[] => {
    const end = (one: 'a' | 'b'): Step => {
      const outcomes = [{ kind, job: one, token: 'last' as const, keep: {} }];
      return { verb: 'settle', via: 0, outcomes, caller: worker, claim: undefined, again: false };
    };
    return [
      { verb: 'configure', via: 0, settings: { metrics: { points: 3 } } },
      { verb: 'claim', via: 1, session: worker, claim: { ...PLAIN, count: 2, jobIds: ['a', 'b'] }, again: false },
      end('a'),
      { verb: 'pass', via: 0, ms },
      end('b'),
    ];
  });

export const sequence = (maxLength: number): fc.Arbitrary<Step[]> =>
  fc
    .array(
      fc.oneof(
        { weight: 20, arbitrary: step.map((one) => [one]) },
        { weight: 1, arbitrary: crash },
        { weight: 1, arbitrary: work },
        { weight: 1, arbitrary: limits },
        { weight: 1, arbitrary: minutes },
      ),
      { minLength: 1, maxLength, size: 'max' },
    )
    .map((parts) => parts.flat());

export type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;
export type Claiming = typeof claiming extends fc.Arbitrary<infer C> ? C : never;
export type OutcomePart = typeof outcome extends fc.Arbitrary<infer O> ? O : never;
export type Look = typeof look extends fc.Arbitrary<infer L> ? L : never;
