// The lock methods of a Queue: named locks, locks of jobs, and the other running instances. The locks themselves live in lock/.
import { JOB_CONTEXT } from '../handle/job-context.js';
import type { LockClient } from '../lock/lock-client.js';
import { type Instance, instancesOf } from '../lock/instances.js';
import { checkLockDuration, type CheckedSessionOptions } from '../session/session-options.js';
import { LEADER_LOCK } from '../lock/leader.js';
import type { NamedLock } from '../lock/named-lock.js';
import type { LockTerms } from '../lock/named-locks.js';
import { checkInteger, checkText, invalidOption, MAX_TIMER_MS } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';
import type { LockInfo, NamedLockInfo, Owner } from '../store/contract/index.js';
import { QueueGroups } from './grouping.js';

export interface LockOptions {
  /** How long the lock survives the death of its holder, in ms. Default: the queue's `lockDuration`. */
  durationMs?: number;
  /** How long to wait for the lock, in ms. 0: not at all. Default: no limit for `lock`, 0 for `takeLock`. */
  waitMs?: number;
  /** Aborting it ends the wait. */
  signal?: AbortSignal;
}

export interface LockHolding {
  owner: Owner;
  /** In ms since the epoch, on the store's clock. */
  since: number;
  /** When the lock ends without a renewal, in ms since the epoch on this host's clock. */
  until: number;
  /** The same as a duration from now. 0 or less: the lock is dead, and was not swept yet. */
  endsInMs: number;
  fence: number;
  /** The session that holds the lock. */
  session: string;
}

const LOCK_NAMES = new OptionNames<LockOptions>({ of: 'lock', known: { durationMs: true, waitMs: true, signal: true } });

const MAX_LOCK_NAME = 500;
const RESERVED = 'holdfast:';

export abstract class QueueLocks<T, R, N extends string> extends QueueGroups<T, R, N> {
  protected abstract readonly lockClient: LockClient;
  protected abstract readonly sessionOptions: CheckedSessionOptions;

  /**
   * Runs `work` while no other session, on any machine, holds the lock of this name. Waiters get the lock in the order in which they came.
   * Rejects with TIMEOUT after `waitMs` (default: no limit), and with LOCK_LOST if the lock was lost before `work` ended.
   */
  async lock<V>(name: string, work: (lock: NamedLock) => Promise<V> | V): Promise<V>;
  async lock<V>(name: string, options: LockOptions, work: (lock: NamedLock) => Promise<V> | V): Promise<V>;
  async lock<V>(
    name: string,
    ...args: [(lock: NamedLock) => Promise<V> | V] | [LockOptions, (lock: NamedLock) => Promise<V> | V]
  ): Promise<V> {
    const [options, work] = args.length === 1 ? [{}, args[0]] : args;
    if (typeof work !== 'function') throw invalidOption('work', work, 'a function that works under the lock');
    return this.lockClient.locks.hold(checkLockName(name), this.#terms(options, Number.POSITIVE_INFINITY), work);
  }

  /** Returns the lock, to be released with `release()`; undefined if another session has it for all of `waitMs` (default 0). */
  async takeLock(name: string, options: LockOptions = {}): Promise<NamedLock | undefined> {
    return this.lockClient.locks.take(checkLockName(name), this.#terms(options, 0));
  }

  /** Returns the holder of the job's lock; undefined if the lock is free. */
  async getLock(jobId: string): Promise<(LockHolding & { jobId: string }) | undefined> {
    const [info] = await (await this.store).locks(this[JOB_CONTEXT].stored, { jobIds: [jobId] });
    return info === undefined ? undefined : { jobId, ...holdingOf(info) };
  }

  /** Returns the holder of the named lock and the number of waiters; undefined if the lock is free. */
  async getNamedLock(name: string): Promise<(LockHolding & { name: string; waiting: number }) | undefined> {
    const [info] = await (await this.store).locks(this[JOB_CONTEXT].stored, { names: [name] });
    return info === undefined ? undefined : { name, waiting: info.waiting, ...holdingOf(info) };
  }

  /** Returns the running programs that have a session on this queue: with workers, with locks, or standing for election. */
  async getInstances(): Promise<Instance[]> {
    const store = await this.store;
    const [sessions, [leadership]] = await Promise.all([
      store.sessions(this[JOB_CONTEXT].stored),
      store.locks(this[JOB_CONTEXT].stored, { names: [LEADER_LOCK] }),
    ]);
    return instancesOf(sessions, leadership, Date.now());
  }

  #terms(options: LockOptions, waitMs: number): LockTerms {
    LOCK_NAMES.checked(options);
    const { lockDuration, lockRenewTime } = this.sessionOptions;
    const { signal } = options;
    if (signal !== undefined && !(signal instanceof AbortSignal)) throw invalidOption('signal', signal, 'an AbortSignal');
    if (options.waitMs !== undefined && options.waitMs !== Number.POSITIVE_INFINITY) {
      checkInteger('waitMs', options.waitMs, { max: MAX_TIMER_MS });
    }
    const durationMs = checkLockDuration('durationMs', options.durationMs ?? lockDuration);
    const renewMs = durationMs === lockDuration ? lockRenewTime : Math.floor(durationMs / 2);
    return { durationMs, renewMs, waitMs: options.waitMs ?? waitMs, signal };
  }
}

function holdingOf({ owner, since, endsInMs, fence, session }: LockInfo | NamedLockInfo): LockHolding {
  return { owner, since, until: Math.round(Date.now() + endsInMs), endsInMs, fence, session };
}

function checkLockName(name: unknown): string {
  const checked = checkText('name', name, MAX_LOCK_NAME);
  if (checked.startsWith(RESERVED))
    throw invalidOption('name', name, `one that does not begin with "${RESERVED}", which Holdfast uses`);
  return checked;
}
