// Jobs that are taken by hand (getNextJob) and moves that a processor makes itself. Locks of jobs taken by hand are timed: nothing renews
// them but whoever took them, so that a job which is forgotten comes back.
import type { Outcome, SettleStatus } from '../job/outcome.js';
import type { ClaimedJob } from '../job/record.js';
import { HeldLock } from '../lock/held-lock.js';
import type { LockTable } from '../lock/lock-table.js';
import { now } from '../lock/trust.js';
import { systemClock } from '../runtime/clock.js';
import type { Extension, ExtendStatus, Store } from '../store/contract.js';
import type { CallReply, Calls, ClaimWish } from './calls.js';
import type { CheckedWorkerOptions } from './options.js';
import type { Tenure } from './tenure.js';

export interface ManualJobsOptions {
  name: string;
  calls: Calls;
  tenure: Tenure;
  table: LockTable;
  options: CheckedWorkerOptions;
  ready(): Promise<Store>;
}

export class ManualJobs {
  readonly #options: ManualJobsOptions;
  readonly #locks = new Set<HeldLock>();
  /** By job id and alias. */
  readonly #aliases = new Map<string, HeldLock>();
  #stopWaiting: (() => void) | undefined;
  #stopped = false;

  constructor(options: ManualJobsOptions) {
    this.#options = options;
  }

  /** With `block`, waits up to drainDelay for a job to come. */
  async take(block: boolean): Promise<{ job: ClaimedJob; lock: HeldLock } | undefined> {
    const waitUntil = systemClock.monotonic() + (block ? this.#options.options.drainDelay * 1000 : 0);
    for (;;) {
      const reply = await this.#options.calls.perform([], this.#wish());
      const taken = this.#adopt(reply);
      if (taken !== undefined || this.#stopped) return taken;
      if (reply.claimed?.sessionAlive === false) {
        this.#options.tenure.drop(reply.session);
        continue;
      }
      const left = waitUntil - systemClock.monotonic();
      if (left <= 0) return undefined;
      await this.#somethingNew(Math.min(left, reply.claimed?.nextInMs ?? left));
    }
  }

  /** Settles a lock of this worker, or with a foreign token lets the store refuse. */
  async settle(outcome: Outcome, fetchNext: boolean): Promise<{ status: SettleStatus; next?: ClaimedJob }> {
    const lock = this.#options.table.get(outcome.token);
    // Before the call: a deadline that passes meanwhile must not be reported, the store's answer is on its way.
    if (lock !== undefined) lock.finishing = true;
    const reply = await this.#options.calls.perform([outcome], fetchNext ? this.#wish() : undefined);
    const status = reply.results[0] ?? 'missing';
    if (lock !== undefined && status === 'done') {
      lock.settled = true;
      this.forget(lock);
    } else if (lock !== undefined) lock.finishing = false;
    const next = this.#adopt(reply);
    return next === undefined ? { status } : { status, next: next.job };
  }

  /** The token that `getNextJob` was given stands for the real one wherever this worker is asked. */
  alias(lock: HeldLock, alias: string | undefined): void {
    if (alias !== undefined) this.#aliases.set(`${lock.jobId} ${alias}`, lock);
  }

  async extend(extensions: Extension[]): Promise<ExtendStatus[]> {
    const store = await this.#options.ready();
    const sentAt = now(systemClock);
    const real = extensions.map((extension) => ({ ...extension, token: this.#realToken(extension) }));
    const statuses = await store.extend(this.#options.name, real);
    real.forEach(({ token, durationMs }, index) => {
      if (statuses[index] === 'done') this.#options.table.get(token)?.extend(sentAt, durationMs);
    });
    return statuses;
  }

  /** True: it was taken by hand, and nobody but its taker has to know that it lapsed. */
  forget(lock: HeldLock): boolean {
    if (!this.#locks.delete(lock)) return false;
    for (const [key, aliased] of this.#aliases) if (aliased === lock) this.#aliases.delete(key);
    this.#options.table.untrack(lock);
    return true;
  }

  /** Ends all waiting for jobs. */
  stop(): void {
    this.#stopped = true;
    this.#stopWaiting?.();
  }

  #realToken({ jobId, token }: Extension): string {
    return this.#aliases.get(`${jobId} ${token}`)?.token ?? token;
  }

  #wish(): ClaimWish {
    return { count: 1, by: this.#options.options.name, timedMs: this.#options.options.lockDuration };
  }

  #adopt({ claimed, session, sentAt }: CallReply): { job: ClaimedJob; lock: HeldLock } | undefined {
    const job = claimed?.jobs[0];
    if (job === undefined) return undefined;
    const timed = { durationMs: this.#options.options.lockDuration, sentAt };
    const lock = new HeldLock({ session, job, timed, onGrown: (block) => this.#options.tenure.grow(session, block) });
    this.#locks.add(lock);
    this.#options.table.track(lock);
    return { job, lock };
  }

  async #somethingNew(withinMs: number): Promise<void> {
    const store = await this.#options.ready();
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        unwatch();
        this.#stopWaiting = undefined;
        resolve();
      };
      const timer = setTimeout(done, Math.max(1, withinMs));
      const unwatch = store.watch(this.#options.name, done);
      this.#stopWaiting = done;
    });
  }
}
