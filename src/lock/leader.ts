// Leader election: of all instances that stand under one name, one leads at a time. Leadership is a named lock, and its fence is the term
// number. So a renewer renews it, trust ends before another instance can lead, and a term number is never given twice. A Leader must
// never report that it leads for longer than it can trust its lock, even after a blocked event loop or a frozen process.
import { HoldfastError, toError } from '../errors.js';
import type { LostBy } from '../job/lost-by.js';
import { queueNames } from '../job/names.js';
import { MAX_TIMER_MS } from '../runtime/check.js';
import { ClosingEmitter } from '../runtime/emitter.js';
import { OptionNames } from '../runtime/option-names.js';
import { type Connection, leaseStore, type StoreLease } from '../store/open.js';
import { LockClient } from './lock-client.js';
import {
  checkSessionOptions,
  checkLockDuration,
  checkRenewTime,
  SESSION_OPTION_NAMES,
  type SessionOptions,
} from '../session/session-options.js';
import type { LostJob } from './lost-jobs.js';
import type { NamedLock } from './named-lock.js';
import { clearInterval, clearTimeout, setInterval, setTimeout } from '../runtime/timers.js';

export interface ElectionOptions
  extends Pick<
    SessionOptions,
    | 'instanceId'
    | 'useDedicatedLockThread'
    | 'lockThreadEntry'
    | 'maxBlockedMs'
    | 'crashGraceMs'
    | 'stalledInterval'
    | 'skipStalledCheck'
  > {
  /** How long a dead or cut-off leader still leads, in ms. Default 15000. */
  leaderTimeout?: number;
  /**
   * Time between two renewals of the leader, and the longest time between two asks of a follower, in ms. Default a third of
   * `leaderTimeout`, at most 5000.
   */
  heartbeatInterval?: number;
}

export interface LeaderOptions extends ElectionOptions {
  connection?: Connection;
  /** The prefix of the queues among which it leads. */
  prefix?: string;
}

const ELECTION = { ...SESSION_OPTION_NAMES, leaderTimeout: true, heartbeatInterval: true } as const;
/** Also knows the lock options that a leader sets itself, so that they are not reported as a mistake. */
export const ELECTION_NAMES = new OptionNames<ElectionOptions>({ of: 'leader', known: ELECTION });
const LEADER_NAMES = new OptionNames<LeaderOptions>({ of: 'leader', known: { ...ELECTION, connection: true, prefix: true } });

export type LeaderEvents = {
  /** This instance leads now. The term number grows with every change of leader. */
  leader: [term: number];
  /** This instance does not lead: emitted at the start, and when a term ends. */
  follower: [reason: string];
  /** This instance found a job whose owner died. It sweeps while it stands for election. */
  stalled: [jobId: string, lostBy?: LostBy];
  error: [error: Error];
};

export type LeaderWork = (signal: AbortSignal, term: number) => unknown;

/** The name of the leader's lock among the named locks of the queue. */
export const LEADER_LOCK = 'holdfast:leader';

const NOT_LEADING = AbortSignal.abort(new Error('This instance does not lead.'));

interface Term {
  lock: NamedLock;
  controller: AbortController;
  /** Resolves the promise that waits for the end of the term. */
  end(): void;
}

export class Leader extends ClosingEmitter<LeaderEvents> {
  readonly name: string;
  readonly leaderTimeout: number;
  readonly heartbeatInterval: number;
  closing: Promise<void> | undefined;
  readonly #lease: StoreLease;
  readonly #lockClient: LockClient;
  readonly #leaving = new AbortController();
  readonly #standing: Promise<void>;
  /** Keeps the process alive while the instance stands for election. */
  readonly #alive: NodeJS.Timeout;
  readonly #ready: Promise<void>;
  #resolveReady: () => void = () => undefined;
  #term: Term | undefined;
  #isFollowerEmitted = false;
  #work: LeaderWork | undefined;
  #working: Promise<void> = Promise.resolve();

  constructor(name: string, options: LeaderOptions = {}) {
    super();
    LEADER_NAMES.check(options);
    const names = queueNames(name, options.prefix);
    this.name = names.name;
    this.leaderTimeout = checkLockDuration('leaderTimeout', options.leaderTimeout ?? 15_000);
    const beat = options.heartbeatInterval ?? Math.min(5000, Math.floor(this.leaderTimeout / 3));
    this.heartbeatInterval = checkRenewTime('heartbeatInterval', beat, 'leaderTimeout', this.leaderTimeout);
    const sessionOptions = checkSessionOptions({
      ...options,
      lockDuration: this.leaderTimeout,
      lockRenewTime: this.heartbeatInterval,
    });
    const onError = (error: Error): void => void this.emit('error', error);
    this.#lease = leaseStore(options.connection, onError);
    const onStalled = (lost: LostJob[]): void => {
      for (const { jobId, lostBy } of lost) this.emit('stalled', jobId, lostBy);
    };
    this.#lockClient = new LockClient({
      queue: names.stored,
      name: 'leader',
      lease: this.#lease,
      sessionOptions,
      onStalled,
      onError,
    });
    this.#ready = new Promise((resolve) => {
      this.#resolveReady = resolve;
    });
    this.#alive = setInterval(() => undefined, MAX_TIMER_MS);
    this.#standing = this.#stand();
  }

  /**
   * True while this instance certainly leads. Read it before every step that only a leader may take: it needs no I/O, and is false at the
   * first read after a freeze. While the store does not reply it is false. The term goes on, and `isLeader` turns true again if the store
   * replies in time.
   */
  get isLeader(): boolean {
    return this.#goesOn() && this.#term?.lock.isSure === true;
  }

  /** The term number, to be used as the fence of this leader's writes. Undefined while this instance does not lead. */
  get term(): number | undefined {
    return this.isLeader ? this.#term?.lock.fence : undefined;
  }

  /** Aborted when this term ends. While this instance does not lead, the signal is already aborted. */
  get signal(): AbortSignal {
    return this.isLeader ? (this.#term?.controller.signal ?? NOT_LEADING) : NOT_LEADING;
  }

  /** Resolves when this instance knows whether it leads. */
  waitUntilReady(): Promise<void> {
    return this.#ready;
  }

  /**
   * Calls `work` at the start of each term of this instance, never twice at once, until the leader is closed. If the work throws, the
   * term is given up, so that another instance can try.
   */
  async run(work: LeaderWork): Promise<void> {
    if (this.#work !== undefined)
      throw new HoldfastError('ALREADY_RUNNING', `The leader of "${this.name}" runs something already.`);
    this.#work = work;
    if (this.#goesOn() && this.#term !== undefined) this.#begin(this.#term);
    await this.#standing;
    await this.#working;
  }

  /** Steps down, waits for the work of `run` to end, and hands over at once. Idempotent. */
  close(): Promise<void> {
    this.closing ??= this.#close();
    return this.closing;
  }

  async #close(): Promise<void> {
    this.#leaving.abort();
    if (this.#term !== undefined) this.#stepDown(this.#term, 'it was closed');
    try {
      await this.#standing;
      await this.#lockClient.close();
      await this.#lease.release();
    } finally {
      clearInterval(this.#alive);
      this.#resolveReady();
    }
  }

  async #stand(): Promise<void> {
    // Waits one tick: the user attaches listeners after the constructor.
    await Promise.resolve();
    while (!this.#leaving.signal.aborted) {
      try {
        const lock = await this.#lockClient.locks.take(LEADER_LOCK, {
          durationMs: this.leaderTimeout,
          renewMs: this.heartbeatInterval,
          askMs: this.heartbeatInterval,
          waitMs: Number.POSITIVE_INFINITY,
          signal: this.#leaving.signal,
          onTaken: () => this.#follow('another instance leads'),
        });
        if (lock !== undefined) await this.#lead(lock);
      } catch (thrown) {
        if (this.#leaving.signal.aborted) return;
        this.emit('error', toError(thrown));
        await this.#pause();
      }
    }
  }

  async #lead(lock: NamedLock): Promise<void> {
    const controller = new AbortController();
    const ended = new Promise<void>((end) => {
      this.#term = { lock, controller, end };
    });
    const term = this.#term as unknown as Term;
    lock.signal.addEventListener('abort', () => this.#stepDown(term, toError(lock.signal.reason).message), { once: true });
    if (this.#leaving.signal.aborted) this.#stepDown(term, 'it was closed');
    if (this.#goesOn()) {
      this.#isFollowerEmitted = false;
      this.emit('leader', lock.fence);
      this.#resolveReady();
      if (this.#work !== undefined) this.#begin(term);
    }
    await ended;
    // A leader that steps down by itself keeps the lock until its work has ended. A lock that is already lost is released at once.
    if (lock.trusted) await this.#working;
    await lock.release();
    await this.#working;
  }

  /** True if there is a term and its lock has not been lost. */
  #goesOn(): boolean {
    const term = this.#term;
    if (term === undefined || term.lock.trusted) return term !== undefined;
    this.#stepDown(term, 'the lease could not be renewed in time');
    return false;
  }

  #begin(term: Term): void {
    const { lock, controller } = term;
    this.#working = this.#working.then(async () => {
      if (controller.signal.aborted) return;
      try {
        await this.#work?.(controller.signal, lock.fence);
      } catch (thrown) {
        if (controller.signal.aborted) return;
        this.emit('error', toError(thrown));
        this.#stepDown(term, 'its work failed');
        await this.#pause();
      }
    });
  }

  #stepDown(term: Term, reason: string): void {
    if (this.#term !== term) return;
    this.#term = undefined;
    term.controller.abort(new HoldfastError('LOCK_LOST', `No longer the leader of "${this.name}": ${reason}.`));
    this.#follow(reason);
    term.end();
  }

  #follow(reason: string): void {
    if (this.#isFollowerEmitted) return;
    this.#isFollowerEmitted = true;
    this.emit('follower', reason);
    this.#resolveReady();
  }

  /** Waits one heartbeat interval, so that another instance can take the lock first. */
  async #pause(): Promise<void> {
    const { signal } = this.#leaving;
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      const over = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', over);
        resolve();
      };
      const timer = setTimeout(over, this.heartbeatInterval);
      signal.addEventListener('abort', over);
    });
  }
}
