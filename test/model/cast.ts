// Who plays in a sequence: which session goes by a name at the moment, which number a caller's next call has. Both sides are cast alike;
// only tokens are their own, for each store makes its own.
import { inspect } from 'node:util';
import type { Keep, Outcome } from '../../src/job/outcome.js';
import type { JobRecord, NewJob } from '../../src/job/record.js';
import type { Call, ClaimRequest, ListQuery, SettleReply, StatusQuery, Store, Write } from '../../src/store/contract/index.js';
import type { Act, Side } from './side.js';
import { type Claiming, GROUPS, LOCKS, type Look, type OutcomePart, type Step, UNIQUE } from './steps.js';

const EVERY_POINT = { kind: 'completed', start: 0, end: -1 } as const;
const OWNER = { host: 'host', pid: 1, name: 'worker', instance: 'program' };

export class Cast {
  readonly queue: string;
  /** Every session that was ever opened. */
  readonly sessions: string[] = [];
  readonly #playing = new Map<string, string>();
  readonly #seqs = new Map<string, number>();
  readonly #wishes = new Map<string, string>();
  #names = 0;

  readonly #lazyKeys: boolean;
  /** What a look at the status asks for. */
  readonly ask: StatusQuery = {
    priorities: [0, 1, 2],
    metrics: EVERY_POINT,
    deduplication: [...UNIQUE],
    groups: { keys: [...GROUPS] },
  };

  constructor(queue: string, lazyKeys = false) {
    this.queue = queue;
    this.#lazyKeys = lazyKeys;
  }

  /** Where each call ended in the log of events. */
  readonly marks: number[] = [0];

  /** Called once for each step: it counts calls and names. */
  act(step: Step): Act {
    const { queue } = this;
    switch (step.verb) {
      case 'add': {
        const batch = (this.#names += 1);
        // "A job has a lock key or a group, not both."
        const valid = step.jobs.map((job) => (job.group === undefined ? job : { ...job, lockKey: undefined }));
        const jobs = valid.map((job, index) => newJob(job, index, batch));
        const call = this.#call(step.producer);
        return (store) => store.add(queue, jobs, call);
      }
      case 'open': {
        const { durationMs, maxStalls, slots } = step;
        const id = `${step.session}-${(this.#names += 1)}`;
        this.#playing.set(step.session, id);
        this.sessions.push(id);
        return (store) => store.openSession({ queue, id, owner: OWNER, durationMs, maxStalls, slots });
      }
      case 'claim': {
        const request = this.#request(step.session, step.claim);
        return (store, side) => side.granted(store.claim(queue, request), ({ jobs }) => jobs);
      }
      case 'settle':
        return this.#settle(step);
      case 'renew': {
        const { acked, slots } = step;
        const ids = step.sessions.map((session) => this.#id(session));
        return (store, side) => {
          const renewals = ids.map((id) => ({ queue, id, acked: acked ? side.seenBy(id) : 0, ...given({ slots }) }));
          return side.told(ids, store.renew(renewals));
        };
      }
      case 'close': {
        const sessions = step.sessions.map((session) => ({ queue, id: this.#id(session) }));
        return (store) => store.closeSessions(sessions, step.how);
      }
      case 'sweep':
        return async (store) => sweepAll(store, queue, step.limit);
      case 'extend':
        return (store, side) =>
          store.extend(
            queue,
            step.extensions.map(({ job, token, durationMs, alone }) => {
              return { jobId: job, token: side.token(job, token), durationMs, ...given({ alone }) };
            }),
          );
      case 'write':
        return (store, side) =>
          store.write(
            queue,
            step.writes.map(({ job, token, kind, keep, name }, index) => {
              if (kind === 'event') return { kind, name: `own-${index}`, args: `{"job":"${job}"}` };
              const own = { jobId: job, ...(token !== undefined && { token: side.token(job, token) }) };
              if (kind === 'step') return { ...own, kind, name, value: `${index}` };
              return { ...own, kind, data: `[${index}]`, progress: `${index}`, row: `row ${index}`, ...given({ keep }) } as Write;
            }),
          );
      case 'change':
        return (store) => store.change(queue, step.jobs, step.change);
      case 'select': {
        const { change } = step;
        const { list, olderThanMs } = step.selection;
        return async (store) => {
          const free = await isFree(store, queue, step);
          if (free && change.kind !== 'remove') return undefined;
          const limit = free ? 1_000 : step.selection.limit;
          const reply = await store.change(queue, { lists: [list], limit, ...given({ olderThanMs }) }, change);
          return free ? { ...reply, changed: reply.changed.sort() } : reply;
        };
      }
      case 'configure':
        return (store) => store.configure(queue, step.settings);
      case 'acquire': {
        const wishes = step.wishes.map(({ name, session, fresh, keepPlaceMs }) => {
          return { name, session: this.#id(session), token: this.#wish(name, session, fresh), keepPlaceMs };
        });
        return (store) => store.acquire(queue, wishes);
      }
      case 'letGo': {
        const locks = step.locks.map(({ name, session }) => ({ name, token: this.#wish(name, session, false) }));
        return (store) => store.letGo(queue, locks);
      }
      case 'forget':
        return async (store, side) => {
          const { events } = step;
          if (events !== undefined) return side.trimmed(store.forget(queue, { events }), store, queue);
          // "Forgets an emptied queue".
          const { counts } = await store.status(queue);
          if (Object.values(counts).some((count) => count > 0)) return;
          await side.trimmed(store.forget(queue, { all: true }), store, queue);
        };
      case 'forgetEntries': {
        const { ids, ownedBy } = step;
        if (this.ask.deduplication === undefined) return async () => undefined;
        return (store) => store.forget(queue, { deduplication: ids, ...given({ ownedBy }) });
      }
      case 'pass':
        return async () => undefined;
      case 'look':
        return this.#look(step.look);
    }
  }

  #settle({ outcomes, caller, claim }: Extract<Step, { verb: 'settle' }>): Act {
    const { queue } = this;
    const isWorker = caller !== undefined && caller !== 'settler';
    const call = caller === undefined ? undefined : this.#call(isWorker ? this.#id(caller) : caller);
    // "shared with `settle` when both happen in one call"
    const request = claim && this.#request(isWorker ? caller : 's1', claim, isWorker ? call?.seq : undefined);
    // A repetition has the tokens of the first time, whatever was claimed with it.
    const told = new Map<Side, Outcome[]>();
    return (store, side) => {
      const tell = told.get(side) ?? this.#alike(outcomes.map((outcome, index) => outcomeOf(outcome, side, index)));
      told.set(side, tell);
      return side.granted(settleAll(store.settle(queue, tell, call, request), tell), ({ claimed }) => claimed?.jobs ?? []);
    };
  }

  #alike(outcomes: Outcome[]): Outcome[] {
    return alikeKept(outcomes.length < 2 ? outcomes : alikeRetried(outcomes));
  }

  #look(look: Look): Act {
    const { queue } = this;
    switch (look.at) {
      case 'group': {
        const { group, start } = look;
        return (store) => store.jobs(queue, { group, start, end: -1, asc: start === 0 });
      }
      case 'status':
        return (store) => store.status(queue, this.ask);
      case 'metrics': {
        const { at: _, ...metrics } = look;
        return (store) => store.status(queue, { metrics });
      }
      case 'jobs':
        return (store) => store.jobs(queue, look.jobs);
      case 'list': {
        const { at: _, ...query } = look;
        return (store) => this.list(store, query);
      }
      case 'events':
        return this.#events(look.after, look.limit);
      case 'logs':
        return (store) => store.logs(queue, look.job, { start: look.start, end: -1, asc: look.asc });
      case 'lockOf':
        return (store) => store.locks(queue, { jobIds: [look.job] });
      case 'owned': {
        const id = this.#id(look.session);
        return (store) => store.locks(queue, { session: id });
      }
      case 'sessions':
        return (store) => sessionsOf(store, queue);
      case 'namedLocks':
        return (store) => store.locks(queue, { names: [...LOCKS] });
    }
  }

  async groupJobs(store: Store): Promise<string[][]> {
    const listed = GROUPS.map((group) => store.jobs(this.queue, { group, start: 0, end: -1, asc: true }));
    return (await Promise.all(listed)).map(({ jobs }) => jobs.map(({ id }) => id));
  }

  async list(store: Store, query: ListQuery): Promise<JobRecord[]> {
    if (!this.#lazyKeys) return (await store.jobs(this.queue, query)).jobs;
    const { jobs: records } = await store.jobs(this.queue, { ...query, start: 0, end: -1 });
    return records.some(({ opts }) => opts.includes('lockKey')) ? records.sort((a, b) => (a.id < b.id ? -1 : 1)) : records;
  }

  #request(session: string, { count: wanted, ...options }: Claiming, seq?: number): ClaimRequest {
    const id = this.#id(session);
    // Whether a due job that was named beyond the count is still delayed or waits already is the same to everybody: it "counts as waiting".
    const count = Math.max(wanted, options.jobIds?.length ?? 0);
    return { session: id, seq: seq ?? this.#call(id).seq, count, ...given(options) };
  }

  #call(caller: string): Call {
    const seq = (this.#seqs.get(caller) ?? 0) + 1;
    this.#seqs.set(caller, seq);
    return { caller, seq };
  }

  /** From where a call ended: what comes first within one is not the same everywhere. */
  #events(call: number | undefined, page: number): Act {
    const { queue, marks } = this;
    const after = call === undefined ? undefined : marks[call % marks.length];
    return (store, side) => side.events(store, queue, { after, page, marks });
  }

  /** The last one that was opened under this name. */
  #id(session: string): string {
    return this.#playing.get(session) ?? `${session}-unopened`;
  }

  #wish(name: string, session: string, fresh: boolean): string {
    const key = `${name} ${this.#id(session)}`;
    const known = this.#wishes.get(key);
    if (known !== undefined && !fresh) return known;
    const made = `wish-${(this.#names += 1)}`;
    this.#wishes.set(key, made);
    return made;
  }
}

type JobPart = Extract<Step, { verb: 'add' }>['jobs'][number];

/** The timestamp, which stores only keep, tells which jobs came together. */
function newJob({ id, lockKey, group, deduplication, ...job }: JobPart, index: number, timestamp: number): NewJob {
  const opts = lockKey === undefined ? job.opts : JSON.stringify({ ...(JSON.parse(job.opts) as object), lockKey });
  const plain = { name: `name-${index}`, data: `{"n":${index}}`, timestamp, ...job, opts, ...given({ id, lockKey, group }) };
  if (deduplication === undefined) return plain;
  const { ttlMs, ...mode } = deduplication;
  if (!mode.keepLastIfActive) return { ...plain, deduplication: { ...mode, ...given({ ttlMs }) } };
  // A draft goes to the back, where no other job of the same call goes: see `alikeRetried`.
  return {
    ...plain,
    id: index % 2 === 0 ? 'e' : 'f',
    lifo: false,
    deduplication: { ...mode, id: UNIQUE[0], ...given({ ttlMs }) },
  };
}

/** A draft and a job that is retried both go to the back: which one comes first is the store's affair, so retried jobs go to the front. */
function alikeRetried(outcomes: Outcome[]): Outcome[] {
  return outcomes.map((outcome) => (outcome.kind === 'retry' ? { ...outcome, lifo: true } : outcome));
}

function outcomeOf(outcome: OutcomePart, side: Side, index: number): Outcome {
  const owned = { jobId: outcome.job, token: side.token(outcome.job, outcome.token) };
  const failure = { reason: `reason ${index}`, stacktrace: `["stack ${index}"]` };
  switch (outcome.kind) {
    case 'completed':
      return { ...owned, kind: 'completed', value: `${index}`, keep: outcome.keep };
    case 'failed':
      return { ...owned, kind: 'failed', ...failure, keep: outcome.keep };
    case 'retry':
      return { ...owned, kind: 'retry', ...failure, delayMs: outcome.delayMs, lifo: outcome.lifo };
    case 'delay':
      if (outcome.step === undefined) return { ...owned, kind: 'delay', delayMs: outcome.delayMs };
      return {
        ...owned,
        kind: 'delay',
        delayMs: outcome.delayMs,
        step: { name: outcome.step, value: `${index}` },
        ...given({ awaits: outcome.awaits }),
      };
    case 'release':
    case 'return':
      return { ...owned, kind: outcome.kind };
  }
}

/**
 * Finished jobs that go because of an outcome may go in its turn or in the end. A later outcome of the same call for one of them, which
 * can only be a stale one, finds it gone or not: "nothing was changed" in either case.
 */
async function settleAll(settling: Promise<SettleReply>, outcomes: Outcome[]): Promise<SettleReply> {
  const reply = await settling;
  const trims = outcomes.some((outcome) => 'keep' in outcome && Object.keys(outcome.keep).length > 0);
  return trims ? { ...reply, results: reply.results.map((result) => (result === 'missing' ? 'lost' : result)) } : reply;
}

/**
 * "How many finished jobs of a queue stay": where the outcomes of one call differ in it, a store may go by each in its turn or by the
 * strictest in the end. `{ count: 0 }`, which "says nothing of others", is everyone's own.
 */
function alikeKept(outcomes: Outcome[]): Outcome[] {
  const lasting = outcomes.filter((outcome) => 'keep' in outcome && outcome.keep.count !== 0);
  const keepOf = (kind: string) => lasting.find((outcome) => outcome.kind === kind);
  return outcomes.map((outcome) => (lasting.includes(outcome) ? { ...outcome, ...pickKeep(keepOf(outcome.kind)) } : outcome));
}

function pickKeep(outcome: Outcome | undefined): { keep?: Keep } {
  return outcome !== undefined && 'keep' in outcome ? { keep: outcome.keep } : {};
}

/**
 * "at most `limit` locks per call … call again": how many calls it takes, which of the dead go first and in which order they stand at
 * "the front of waiting" is the store's affair. So those that were swept together are put in one order here, and those that failed
 * together, among which nobody is the oldest, are taken away.
 */
async function sweepAll(store: Store, queue: string, limit: number): Promise<{ stalled: string[]; failed: string[] }> {
  const swept = { stalled: [] as string[], failed: [] as string[] };
  for (let more = true, calls = 0; more; calls += 1) {
    const reply = await store.sweep(queue, limit);
    if (reply.stalled.length + reply.failed.length > limit) throw new Error(`a sweep of ${limit}: ${inspect(reply)}`);
    if (calls === 100) throw new Error('sweep answered `more` a hundred times');
    swept.stalled.push(...reply.stalled);
    swept.failed.push(...reply.failed);
    more = reply.more;
  }
  const [stalled, failed] = [swept.stalled.sort(), swept.failed.sort()];
  if (stalled.length > 1) {
    const records = (await store.jobs(queue, stalled)).jobs.filter((job) => job !== undefined);
    for (const { id, priority } of records) await store.change(queue, [id], { kind: 'priority', priority, lifo: true });
  }
  if (failed.length > 1) await store.change(queue, failed, { kind: 'remove' });
  return { stalled, failed };
}

/**
 * Of those that are of one age, "oldest first" leaves the choice to the store, and of many that are moved, which come first. What
 * they choose would be the end of all comparing: then all are removed, and none is moved.
 */
async function isFree(
  store: Store,
  queue: string,
  { change, selection: { list, limit } }: Extract<Step, { verb: 'select' }>,
): Promise<boolean> {
  const { jobs: records } = await store.jobs(queue, { lists: [list], start: 0, end: -1, asc: true });
  const ages = records.map(({ finishedOn, timestamp }) => finishedOn ?? timestamp);
  return new Set(ages).size < ages.length || (change.kind !== 'remove' && ages.length > limit);
}

/** In no order that the contract speaks of. */
export async function sessionsOf(store: Store, queue: string): Promise<unknown> {
  return (await store.sessions(queue)).sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** Without what is undefined, as exactOptionalPropertyTypes wants it. */
function given<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}
