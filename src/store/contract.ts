// The store contract: all that the rest of Holdfast knows about a store. Engines implement it, the conformance suite in
// testing/ holds them to it, nothing else talks to an engine.
//
// What holds for every verb:
// - A write verb takes a list (or names a bounded chunk), is atomic as a whole, and is durable when its promise resolves. Callers
//   cut lists to `capabilities.batch` wherever they may. What works through more than one call should hold (`clear`, `requeue`,
//   `closeSessions`, many `renew`als) may go in steps, each of them atomic, and no item is ever done in part.
// - Only the store's clock decides. Times that go in are durations; times that come out are durations or the store's epoch ms.
// - Losing a lock is a result per item, never an exception. Exceptions are HoldfastErrors of the store itself (STORE_…);
//   `retryable` ones may or may not have happened, so every write can be repeated: see `Call`.
// - An empty list does no I/O.
// - Replies are bounded by bytes (REPLY_BYTES in budget.ts): a verb that returns jobs, events or logs stops before the item that would exceed the
//   budget, but never before the first. The caller asks again for the rest. Callers bound what they send in the same way.
// - Everything is scoped to the queue that it names.
import type { ClaimedJob, JobRecord, NewJob } from '../job/record.js';
import type { Outcome, SettleStatus } from '../job/outcome.js';
import type { StoredState } from '../job/state.js';
import type { Capabilities } from './capabilities.js';
import type { StoreDescriptor } from './descriptor.js';

export interface Store extends Adding, Claiming, Settling, Sessions, Locks, Control, Inspecting, Waking {
  readonly capabilities: Capabilities;
  /** The library that talks to the engine, for `health()`: undefined where there is none, or before `open` has chosen it. */
  readonly driver?: string | undefined;
  /** How a thread reopens this store, as plain data; undefined when only this process can reach it. */
  describe(): StoreDescriptor | undefined;
  /** Connects, creates or migrates. Idempotent; every other verb may be called only after it. */
  open(): Promise<void>;
  /** Lets everything in flight end, then lets go of the engine. Idempotent. Later calls reject with STORE_CLOSED. */
  close(): Promise<void>;
}

/**
 * Makes a write repeatable after a lost reply. A caller numbers its calls 1, 2, 3 …, has one in flight at a time, and repeats a
 * call whose reply it did not get with the same number: the store then answers as it did the first time and changes nothing.
 * A number below the last one changes nothing either: it is answered from what is left of it, or refused.
 * A producer has a caller id of its own; a worker's is its session's id.
 * With the capability `lanes`, a worker may have that many calls (settles, claims) in flight, each in a lane of its own: what is said
 * of one call at a time and of numbers below the last holds for each lane by itself. No number is used in two lanes of one caller.
 */
export interface Call {
  caller: string;
  seq: number;
  /** From 0, which it is where nothing is said. */
  lane?: number;
}

// ── in ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Adding {
  /**
   * Adds all jobs, in order. An id that exists already changes nothing and answers `duplicate`.
   * Stores remember a producer's last call for at least ten minutes after it.
   * With a `transaction` of the caller's (capability `transactions`) the jobs come with its commit, or never; nobody else waits for it,
   * but for an add of the same id. `call` is not remembered then, and nothing may be repeated: a failure ends the transaction.
   * Without the capability, and with something that is no transaction, the call is refused and nothing is written.
   */
  add(queue: string, jobs: NewJob[], call: Call, transaction?: unknown): Promise<AddReply[]>;
  /**
   * The producer makes no more calls, and each of them was answered at its first try, so that none can still arrive: the store may
   * forget it at once. It forgets all others by their age.
   */
  forgetCaller(queue: string, caller: string): Promise<void>;
}

export interface AddReply {
  id: string;
  duplicate: boolean;
}

// ── out ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Claiming {
  /**
   * Moves up to `count` jobs from waiting to active and grants their locks in the same step. Delayed jobs that are due come to
   * waiting first, also in a queue that is paused, limited or full; many of them may take several claims. Order: priority (0 first), then front to back.
   * Of jobs with the same `lockKey`, one at a time is active, on whichever session: the others stay waiting, hold up nobody behind
   * them, and keep their places, so that the first of them stands where it always stood once the key is free. A key is free again
   * when its job leaves active, however that happens.
   * With a cap (`cap`), no more jobs of the queue than it says are active; see `Cap` for how sessions share them.
   * The same session and seq again: the same jobs, with the same tokens, as far as they are still owned under that seq.
   * Stops at REPLY_BYTES of job data, and sets `more` if that kept it from a further job.
   */
  claim(queue: string, request: ClaimRequest): Promise<ClaimReply>;
}

export interface ClaimRequest {
  session: string;
  /** The `seq` of the worker's call, and its lane; shared with `settle` when both happen in one call. */
  seq: number;
  lane?: number;
  count: number;
  /**
   * Only these, in this order, as far as they wait (delayed ones once they are due) and their keys are free. Pause, limit and cap do
   * not hold them back, but they count under limit and cap as other claims do.
   */
  jobIds?: string[];
  /** Goes to `processedBy`. */
  by?: string;
  /** The locks get an end of their own instead of living as long as the session (skipLockRenewal, manual processing). */
  timedMs?: number;
  /** At most `max` claims of this queue per window, whoever claims. */
  limit?: { max: number; durationMs: number };
}

export interface ClaimReply {
  jobs: ClaimedJob[];
  /** False: the session has expired or never was; nothing was claimed. */
  sessionAlive: boolean;
  paused: boolean;
  /** When time alone brings the next change: a delayed job falls due (also in a paused queue), or a rate limit ends. */
  nextInMs?: number;
  /** Set while the queue is rate limited. */
  limitedMs?: number;
  /** True when nothing is left waiting after this claim. */
  drained: boolean;
  /** True when the claim stopped at REPLY_BYTES: the caller may claim again at once. */
  more?: boolean;
}

// ── done ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Settling {
  /**
   * Carries out the outcomes and then, in the same atomic step and round trip, the claim if one is given.
   * With a `call`, a repetition answers as the first time, even for jobs that were removed on finishing. Without one (a lock
   * holder that is not a worker) a repeated finish is recognised by its token as long as the job is kept.
   */
  settle(queue: string, outcomes: Outcome[], call?: Call, claim?: ClaimRequest): Promise<SettleReply>;
}

export interface SettleReply {
  /** One per outcome, in order. */
  results: SettleStatus[];
  claimed?: ClaimReply;
}

// ── hold ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Sessions {
  /**
   * Opens a session with a full duration from now. The id must never have been used; an id that is open is an error. After a lost
   * reply, open another under a new id: the first one holds nothing and expires by itself.
   */
  openSession(session: NewSession): Promise<void>;
  /**
   * A full duration from now for each session that was not reaped, even if it has expired; never revives a reaped one.
   * One round trip. Clears a suspicion (`probe`).
   */
  renew(renewals: Renewal[]): Promise<RenewReply[]>;
  /**
   * Ends sessions and hands back everything that they hold, named locks too, at once. `charged` says whether that counts as a stall
   * (a crash that could still speak: `lostBy` says `exit`) or not (a shutdown). A session that is gone already is fine.
   */
  closeSessions(sessions: SessionRef[], charged: boolean): Promise<void>;
  /**
   * Reaps expired sessions and locks whose own end has passed, at most `limit` locks per call. Their jobs go to the front of
   * waiting, those of a session in the order in which they were claimed, with one more stall, or, over the session's maxStalls, to failed with STALLED_REASON (the job's removeOnFail holds).
   * Each job's `lostBy` then names the session's owner and how the sweep found the loss: `lock-expired` for a timed lock, `process-gone` for
   * a session that ended under a suspicion (`probe`), `session-expired` for any other.
   * Named locks of dead sessions become free and their places in line are lost; each counts as a lock under `limit`. A session that was
   * swept in part stays dead for renewals and claims. Atomic and idempotent: any number of sweepers may run.
   */
  sweep(queue: string, limit: number): Promise<SweepReply>;
  /**
   * Looks for owners that are surely gone (their process died) and leaves each of their sessions at most its own grace from now;
   * never ends one, never lengthens one, and shortens one that is under suspicion already no further. Stores without a hint suspect
   * nobody.
   */
  probe(queue: string): Promise<ProbeReply>;
  /**
   * Whether sessions are open, have not expired and are under no suspicion. True: whatever is suspected later, nobody gets what the session
   * holds before its grace has passed since the question was sent (or its expiry, which is as before). Changes nothing.
   */
  unsuspected(sessions: SessionRef[]): Promise<boolean[]>;
}

export const STALLED_REASON = 'job stalled more than allowable limit';

export interface SessionRef {
  queue: string;
  id: string;
}

export interface Owner {
  host: string;
  pid: number;
  name: string;
  /** The running program that this session belongs to: a process, unless its user named it otherwise. */
  instance: string;
}

export interface NewSession extends SessionRef {
  owner: Owner;
  durationMs: number;
  /** How often a job of this session may stall before it fails. */
  maxStalls: number;
  /** How many jobs it is willing to run at once; 0 for one that only holds locks. */
  slots: number;
  /** How long it lives on after a hint that its owner died. Default CRASH_GRACE_MS. */
  graceMs?: number;
}

/** Also of sessions that were opened before a store knew of graces. */
export const CRASH_GRACE_MS = 2000;

export interface Renewal extends SessionRef {
  /** What `slots` is now, if it has changed. */
  slots?: number;
  /** The highest revocation number that this session has seen; the store may forget those up to it. */
  acked: number;
}

export interface RenewReply {
  /** False: reaped or closed. It stays so for ever. */
  alive: boolean;
  /** Locks of this session that were taken away, above `acked`, ascending. */
  revoked: Revocation[];
}

export interface Revocation {
  number: number;
  jobId: string;
  token: string;
  fence: number;
  reason: string;
}

export interface ProbeReply {
  /** About how many open sessions there are that may look for the dead too: they share the work. */
  sessions: number;
  /**
   * When the first of those under suspicion ends, also of those that others suspect (who may themselves be gone before they sweep);
   * 0 when it has. Absent: nobody is under suspicion.
   */
  dueInMs?: number;
}

export interface SweepReply {
  /** Back to waiting. */
  stalled: string[];
  /** Over the limit. */
  failed: string[];
  /**
   * JSON texts of LostBy: one for each of `stalled`, then one for each of `failed`. Absent where both are empty; null where the session's
   * record is missing.
   */
  lostBy?: (string | null)[];
  /** More is dead than `limit`: call again. */
  more: boolean;
}

export interface Locks {
  /**
   * Makes locks last at least `durationMs` from now. A timed lock then ends exactly there. A lock that lives as long as its
   * session keeps doing so and survives the session until there.
   */
  extend(queue: string, extensions: Extension[]): Promise<ExtendStatus[]>;
  /**
   * Takes locks away: the jobs go to the front of waiting in the given order, uncharged, and the sessions learn of it at their next renewal.
   * False: not active.
   */
  revoke(queue: string, jobIds: string[], reason: string): Promise<boolean[]>;
  /**
   * Takes named locks, which live as long as their session, or lines up for them. A lock that is free, or whose session has expired
   * (swept or not), goes to whoever has waited longest for it of those whose place is still kept; a wish behind others waits, even
   * when the lock is free. Whoever takes it from an expired session ends that session: a late renewal must not bring back a holder.
   * The same token again: the same answer once it holds, else the same place in line, kept from now on. A place that has lapsed is
   * lost; that of an expired session does not count until it is renewed.
   */
  acquire(queue: string, wishes: LockRequest[]): Promise<LockGrant[]>;
  /** Gives named locks back, or places in line that have not lapsed. False: that token neither held nor waited. */
  letGo(queue: string, locks: NamedLockRef[]): Promise<boolean[]>;
}

export interface NamedLockRef {
  name: string;
  /** Chosen by the caller, new for every acquisition, so that a wish can be repeated after a lost reply. */
  token: string;
}

export interface LockRequest extends NamedLockRef {
  session: string;
  /** How long its place in line is kept without being asked for again. 0: it does not wait, and leaves the line where it stood. */
  keepPlaceMs: number;
}

export interface LockGrant {
  /** taken: somebody else holds it, or comes first. gone: the session is dead, nothing was taken. */
  status: 'held' | 'taken' | 'gone';
  /** Of a held one. Grows with every acquisition of the queue, those of jobs included. */
  fence?: number;
  /** Of a taken one: how many stand in line before this wish. */
  ahead?: number;
  /** Of a taken one: when its holder is dead if nobody renews its session. Absent: nobody holds it, but others come first. */
  endsInMs?: number;
}

export interface Extension {
  jobId: string;
  token: string;
  durationMs: number;
}

/** finished: this very token has finished the job meanwhile, so nothing was lost. lost, missing: nothing was changed. */
export type ExtendStatus = SettleStatus | 'finished';

// ── operate ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Control {
  pause(queue: string, paused: boolean): Promise<void>;
  /** Nothing of this queue is claimed for `durationMs` from now; 0 ends a limit. */
  limit(queue: string, durationMs: number): Promise<void>;
  /** At most so many jobs of the queue are active at once, from the next claim on; undefined takes the cap away. */
  cap(queue: string, cap: Cap | undefined): Promise<void>;
  /** Writes to a job, by its owner (with token) or from outside (without). */
  write(queue: string, writes: Write[]): Promise<WriteReply[]>;
  /** Moves that do not belong to an owner. */
  change(queue: string, changes: Change[]): Promise<ChangeStatus[]>;
  /** Removes jobs with all that belongs to them. A locked job stays. */
  remove(queue: string, jobIds: string[]): Promise<RemoveStatus[]>;
  /**
   * Removes up to `limit` unlocked jobs in one of `states`, oldest first; returns their ids. Call until it returns fewer. A `limit` of 0 only
   * records that a clean is over: one that found nothing, or one whose jobs were removed by their ids.
   */
  clear(queue: string, selection: Selection): Promise<string[]>;
  /** Moves up to `limit` jobs from one of failed, completed, delayed to waiting; answers how many. Call until it answers fewer. */
  requeue(queue: string, selection: Selection): Promise<number>;
  /**
   * Forgets an emptied queue: events, pause, limits, cap, counters of job ids. Fences and the ids of events keep growing, sessions and
   * named locks stay.
   */
  forget(queue: string): Promise<void>;
  /** Keeps about the newest `keep` events; answers how many went. */
  trimEvents(queue: string, keep: number): Promise<number>;
}

/**
 * So that no session is starved by one that finishes and claims in one step, each living one with `slots` is entitled to an equal
 * share of `maxActive` (rounded down, at least 1, or its `slots` if they are fewer): a claim above its own share leaves what the others
 * have not used of theirs. Where sessions outnumber the places, whoever comes first takes them. See `roomUnderCap` in job/cap.ts.
 */
export interface Cap {
  maxActive: number;
}

/** Selects by state and, for finished jobs, by age since they finished (for others since they were added). */
export interface Selection {
  states: StoredState[];
  olderThanMs?: number;
  limit: number;
  /** For a clear with the limit 0: how many jobs the caller has removed by their ids. */
  removed?: number;
}

export type Write = { jobId: string; token?: string } & (
  | { kind: 'data'; data: string }
  | { kind: 'progress'; progress: string }
  /** `keep` newest rows stay. */
  | { kind: 'log'; row: string; keep?: number }
  | { kind: 'clearLogs'; keep?: number }
);

export interface WriteReply {
  status: SettleStatus;
  /** For logs: rows that the job has now. */
  count?: number;
}

export type Change = { jobId: string } & (
  | { kind: 'retry'; from: 'completed' | 'failed'; resetAttemptsMade: boolean; resetAttemptsStarted: boolean }
  | { kind: 'promote' }
  | { kind: 'delay'; delayMs: number }
  | { kind: 'priority'; priority: number; lifo: boolean }
);

/** state: the job is not where the change starts from; nothing changed. */
export type ChangeStatus = 'done' | 'missing' | 'state';
export type RemoveStatus = 'done' | 'missing' | 'locked';

// ── look ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Inspecting {
  /** One entry per id, in order. Large jobs may cut the reply to the first ids (at least one): ask for the others again. */
  jobs(queue: string, jobIds: string[]): Promise<(JobRecord | undefined)[]>;
  /** Positions `start` to `end` (inclusive, -1 = last) of the named lists, one list after the other. */
  list(queue: string, query: ListQuery): Promise<ListReply>;
  status(queue: string): Promise<QueueStatus>;
  /** `count` is the number of all rows. Large rows may cut the reply to the first of the range (at least one). */
  logs(
    queue: string,
    jobId: string,
    range: { start: number; end: number; asc: boolean },
  ): Promise<{ logs: string[]; count: number }>;
  /** Events after `after` in order; without it, none, but `last` is where the log ends now. */
  events(queue: string, after: number | undefined, limit: number): Promise<EventsReply>;
  /** The lock of an active job. */
  lockOf(queue: string, jobId: string): Promise<LockInfo | undefined>;
  namedLocks(queue: string, names: string[]): Promise<(NamedLockInfo | undefined)[]>;
  sessions(queue: string): Promise<SessionInfo[]>;
  /** What the store thinks that a session holds: for reconciling after lost replies. */
  owned(queue: string, session: string): Promise<OwnedLock[]>;
}

/** 'prioritized' lists waiting jobs with a priority, 'waiting' those without. */
export type ListName = StoredState | 'prioritized';

export interface ListQuery {
  lists: ListName[];
  start: number;
  end: number;
  /**
   * Waiting: claim order, or the reverse. Those that wait for their key (it is taken, or another one of it comes first) come last, or,
   * in a store that finds out only when it claims, stand where they would if it were free.
   * Delayed: by due time. Active, finished: by when they came there.
   */
  asc: boolean;
}

export interface ListReply {
  jobs: JobRecord[];
  /** True when the reply was cut at REPLY_BYTES, so that jobs of the range are missing at its end. */
  more: boolean;
}

export interface QueueStatus {
  paused: boolean;
  counts: Record<ListName, number>;
  limitedMs?: number;
  cap?: Cap;
}

export interface LockInfo extends Holding {
  jobId: string;
}

export interface NamedLockInfo extends Holding {
  name: string;
  /** How many stand in line for it. */
  waiting: number;
}

interface Holding {
  token: string;
  fence: number;
  /** The session that holds it. */
  session: string;
  owner: Owner;
  /** Store's epoch ms. */
  since: number;
  /** Until it is dead if nobody renews; negative when it is dead already and was not swept yet. */
  endsInMs: number;
}

export interface SessionInfo extends SessionRef {
  owner: Owner;
  durationMs: number;
  /** Store's epoch ms. */
  since: number;
  renewals: number;
  expiresInMs: number;
  suspected: boolean;
  slots: number;
  /** Of jobs. */
  locks: number;
}

export interface OwnedLock {
  jobId: string;
  token: string;
  fence: number;
  /** The seq of the claim. */
  seq: number;
}

/*
 * Which verb tells what, in this order within a call. `prev` is the state before.
 *   `delay` of delayed is when the job falls due, in the store's epoch ms.
 *   add         added{jobName}, then waiting or delayed{delay}; duplicated for an id that exists
 *   claim       waiting{prev: delayed} for jobs that fell due, active{prev: waiting}
 *   settle      completed{returnvalue, prev} · failed{failedReason, prev} then, unless `early`, retries-exhausted{attemptsMade} ·
 *               retry: waiting{prev: active, failedReason} or delayed{delay, failedReason} · delay: delayed{delay} · release: waiting{prev: active};
 *               then the claim's, then drained if jobs finished and none is waiting or active
 *   sweep       stalled{lostBy}, then waiting{prev: active} or failed{failedReason, prev: active, lostBy}; closeSessions, revoke: waiting{prev: active}
 *               (a charged close tells what a sweep tells)
 *   control     progress{data} · retry, promote: waiting{prev} · delay: delayed{delay} · removed{prev} · cleaned{count} if any went or `limit` is 0 · paused · resumed
 */
/** What happened, told to the outside. Ids count up per queue, so a listener that comes back reads on where it stopped. */
export interface StoredEvent {
  id: number;
  name: EventName;
  jobId?: string;
  /**
   * 1: `returnvalue` or `data` has more than EVENT_VALUE_BYTES and was left out. The reader takes it from the job. The result of a job
   * that is removed on finishing is never left out, because no job would be left to ask.
   */
  large?: number;
  /** prev, returnvalue (JSON text), failedReason, lostBy (JSON text), delay, data (JSON text of progress), jobName, count … */
  [field: string]: string | number | undefined;
}

export type EventName =
  | 'added'
  | 'waiting'
  | 'active'
  | 'progress'
  | 'completed'
  | 'failed'
  | 'retries-exhausted'
  | 'stalled'
  | 'delayed'
  | 'removed'
  | 'cleaned'
  | 'paused'
  | 'resumed'
  | 'drained'
  | 'duplicated';

export interface EventsReply {
  events: StoredEvent[];
  /** True when the reply was cut at REPLY_BYTES. */
  more?: boolean;
  /** Read on from here. */
  last: number;
}

/** Events that a queue keeps unless trimmed to fewer; EVENTS_BYTES_KEPT bounds their bytes. */
export const EVENTS_KEPT = 10_000;

// ── wake ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** 'events': any change, and the default. */
export type WatchedChange = 'jobs' | 'locks' | 'events';

export interface Waking {
  /**
   * Calls back soon after something of the queue may have changed: jobs became claimable (a key
   * or a place under the cap came free), a named lock came free, events were written, pause or limits changed.
   * May call back for nothing, and a wake-up can be lost: callers look for themselves from time to time.
   * With 'jobs', only that something may be claimable, now or sooner than was known, has to be told, and with 'locks' only that a
   * named lock may be had: a store that can tell it apart cheaply does not wake those who are idle for every event of the others.
   */
  watch(queue: string, listener: () => void, what?: WatchedChange): () => void;
  /**
   * Calls back with every setting of the server under which it would not keep what it acknowledges (eviction, persistence), soon
   * and again after each new connection, and with an outage that no call has told of yet. Answers how to stop.
   */
  onWarning(listener: (warning: Error) => void): () => void;
}
