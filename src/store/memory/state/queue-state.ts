// The state of one queue in the memory store. Verbs change it through leave.ts and moves.ts, so a job is always in exactly one place: the
// waiting lists, the delayed heap, the active map or one of the finished lists, as its `state` says.
import { tokenOf } from '../../../job/lock.js';
import type { JobRecord, NewJob } from '../../../job/record.js';
import type { SettleStatus } from '../../../job/outcome.js';
import type { FinishedState, StoredState } from '../../../job/state.js';
import type { AddReply, Cap, NewSession, Notice, Owner, Rate } from '../../contract/index.js';
import { CallMemory } from './callers.js';
import { extraFieldsOf, marksOf } from '../../marks.js';
import { ClaimOrder } from './claim-order.js';
import { Entries } from './entries.js';
import { EventLog } from '../events.js';
import { Heap, type Timed } from './heap.js';
import { Links } from './links.js';
import { LinkedList, type Linked } from '../../../runtime/linked-list.js';
import type { MinuteCounts } from './minute-counts.js';
import { ClaimLimits } from './rate-limit.js';
import { Schedules } from './schedules.js';
import type { StepList } from './step-list.js';
import { Wake } from '../wake.js';

export class QueueState {
  readonly jobs = new Map<string, StoredJob>();
  readonly waiting = new ClaimOrder<StoredJob>();
  readonly delayed = new Heap<StoredJob>();
  /** In the order of the claims. */
  readonly active = new LinkedList<StoredJob>();
  /** Oldest finish first. */
  readonly finished: Readonly<Record<FinishedState, LinkedList<StoredJob>>> = {
    completed: new LinkedList(),
    failed: new LinkedList(),
  };
  /** Jobs that wait for their children, in the order in which they came here. */
  readonly parents = new LinkedList<StoredJob>();
  /** The links of jobs that have or had children. */
  readonly links = new Map<string, Links>();
  /** Open sessions, and ended sessions that still hold a lock or a place in line. */
  readonly sessions = new Map<string, StoredSession>();
  /** Open sessions by the moment at which they may have expired, so a sweep checks no living session. */
  readonly expiries = new Heap<StoredSession>();
  /** The sessions in `sessions` that have ended. */
  readonly ended = new Set<StoredSession>();
  /** Locks with their own end. */
  readonly lockEnds = new Heap<StoredLock>();
  /** Named locks that are held or have lock waiters. */
  readonly names = new Map<string, StoredName>();
  /** The owners of deduplication ids. */
  readonly entries = new Entries();
  readonly schedules = new Schedules();
  readonly adds = new CallMemory<AddReply[]>();
  readonly settles = new CallMemory<SettleStatus[]>();
  readonly log = new EventLog();
  readonly wake = new Wake();
  limits = new ClaimLimits();
  rate: Rate | undefined = undefined;
  metrics: Record<FinishedState, MinuteCounts> | undefined = undefined;
  paused = false;
  cap: Cap | undefined = undefined;
  /** The last job id that the store generated. */
  lastId = 0;
  lastFence = 0;
  /** Jobs ever added. */
  added = 0;
  /** Jobs ever finished. */
  finishes = 0;
  /** A job was added, or a session was opened. False for a queue that was only read. */
  isUsed = false;

  /** `wall` returns the wall clock of the store, in whole epoch ms. `peer` returns a queue that the running call changes too. */
  constructor(
    readonly name: string,
    readonly wall: () => number,
    readonly peer: (name: string) => QueueState,
  ) {}

  linksOf(jobId: string): Links {
    let links = this.links.get(jobId);
    if (links === undefined) this.links.set(jobId, (links = new Links()));
    return links;
  }

  /** Moves the ends of sessions, locks and places in line by the same `ms`, so their order stays. */
  moveEnds(ms: number): void {
    for (const session of this.sessions.values()) {
      session.expiresAt += ms;
      session.at += ms;
      for (const lock of session.ending.forward()) lock.at += ms;
    }
    for (const { line } of this.names.values()) for (const place of line.values()) place.keptUntil += ms;
  }
}

export class StoredJob implements Linked<StoredJob>, Timed {
  before: StoredJob | undefined = undefined;
  after: StoredJob | undefined = undefined;
  /** When a delayed job falls due. */
  at = 0;
  turn = 0;
  slot = -1;
  /** Position of a waiting job among the jobs of its priority. */
  place = 0;

  readonly name: string;
  readonly key: string | undefined;
  readonly group: string | undefined;
  data: string;
  readonly opts: string;
  state: StoredState = 'waiting';
  priority: number;
  delay = 0;
  readonly timestamp: number;
  marks: number;
  extras: Partial<JobRecord> | null;
  attemptsMade = 0;
  attemptsStarted = 0;
  stalledCounter = 0;
  processedOn: number | undefined = undefined;
  finishedOn: number | undefined = undefined;
  processedBy: string | undefined = undefined;
  returnvalue: string | undefined = undefined;
  failedReason: string | undefined = undefined;
  stacktrace: string | undefined = undefined;
  progress: string | undefined = undefined;
  lostBy: string | undefined = undefined;

  logs: string[] | undefined = undefined;
  steps: StepList | undefined = undefined;
  /** Present exactly while the job is active. */
  lock: StoredLock | undefined = undefined;
  /** The session id of the token that finished the job. Storing the token's text would cost memory for each finished job. */
  #finisher: string | undefined = undefined;
  /** NaN, not 0: V8 would choose a field of small integers for 0, and lay out every job anew (280 bytes) when it stores a fence. */
  #finishFence = Number.NaN;

  constructor(
    readonly id: string,
    job: NewJob,
    readonly order: number,
    readonly addedOn: number,
  ) {
    this.name = job.name;
    this.key = job.lockKey;
    this.group = job.group;
    this.data = job.data;
    this.opts = job.opts;
    this.priority = job.priority;
    this.timestamp = job.timestamp;
    this.marks = marksOf(job);
    this.extras = extraFieldsOf(job);
  }

  /** The token that finished the job. The store recognises a repeated finish by it. */
  get finishedBy(): string | undefined {
    return this.#finisher === undefined ? undefined : tokenOf(this.#finisher, this.#finishFence);
  }

  setFinisher({ session, order }: StoredLock): void {
    this.#finisher = session.id;
    this.#finishFence = order;
  }

  clearFinisher(): void {
    this.#finisher = undefined;
  }
}

export class StoredLock implements Linked<StoredLock>, Timed {
  before: StoredLock | undefined = undefined;
  after: StoredLock | undefined = undefined;
  /** The lock's own end, store's epoch ms; infinite when it has none. */
  at = Number.POSITIVE_INFINITY;
  turn = 0;
  slot = -1;

  constructor(
    readonly job: StoredJob,
    readonly session: StoredSession,
    readonly token: string,
    /** The fence. */
    readonly order: number,
    /** The seq of the claim. */
    readonly seq: number,
    readonly since: number,
    /** True: the lock ends exactly at its own end. False: it lives as long as its session, and at least until its own end. */
    public timed: boolean,
  ) {}
}

export class StoredSession implements Timed {
  /** When the sweep checks this session next. No later than `expiresAt`, which moves with every renewal. */
  at: number;
  turn = 0;
  slot = -1;
  readonly id: string;
  readonly owner: Owner;
  readonly durationMs: number;
  readonly maxStalls: number;
  slots: number;
  /** False for ever once the session was reaped or closed. */
  open = true;
  renewals = 0;
  /** The highest call number of each lane. */
  readonly #last: number[] = [];
  /** Locks that end with this session. */
  readonly bound = new LinkedList<StoredLock>();
  /** Locks with their own end. */
  readonly ending = new LinkedList<StoredLock>();
  /** Named locks that this session holds. Its places in line for other names are in `places`. */
  readonly holds = new Set<Hold>();
  readonly places = new Set<Place>();
  readonly notices: Notice[] = [];
  lastNotice = 0;

  constructor(
    session: NewSession,
    readonly since: number,
    public expiresAt: number,
  ) {
    this.at = expiresAt;
    this.id = session.id;
    this.owner = { ...session.owner };
    this.durationMs = session.durationMs;
    this.maxStalls = session.maxStalls;
    this.slots = session.slots;
  }

  lastSeq(lane = 0): number {
    return this.#last[lane] ?? 0;
  }

  called(seq: number, lane = 0): void {
    this.#last[lane] = Math.max(this.lastSeq(lane), seq);
  }

  get locks(): number {
    return this.bound.size + this.ending.size;
  }

  get empty(): boolean {
    return this.locks === 0 && this.holds.size === 0 && this.places.size === 0;
  }

  isAlive(now: number): boolean {
    return this.open && this.expiresAt > now;
  }

  /** Returns the locks in the order of the claims. */
  held(): StoredLock[] {
    return [...this.bound.forward(), ...this.ending.forward()].sort(byFence);
  }
}

/** A name that can be locked. */
export class StoredName {
  hold: Hold | undefined = undefined;
  /** Lock waiters by token, in the order of their first requests. */
  readonly line = new Map<string, Place>();

  constructor(readonly name: string) {}
}

export interface Hold {
  readonly name: StoredName;
  readonly token: string;
  readonly session: StoredSession;
  readonly fence: number;
  readonly since: number;
}

export interface Place {
  readonly name: StoredName;
  readonly token: string;
  readonly session: StoredSession;
  keptUntil: number;
}

export function byFence(a: StoredLock, b: StoredLock): number {
  return a.order - b.order;
}
