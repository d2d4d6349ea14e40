// The jobs that a worker's user takes by hand: getNextJob waits for one, and the user's own name for a token (the alias) stands for the
// real token in later calls. The locks themselves are in lock/job-locks.ts.
import { type Aliased, aliasedLock, dropAlias, setAlias } from '../handle/aliases.js';
import type { Outcome, SettleStatus } from '../job/outcome.js';
import type { ClaimedJob } from '../job/record.js';
import { JobLocks, type TakenJob } from '../lock/job-locks.js';
import { systemClock } from '../runtime/clock.js';
import type { HeldLock } from '../session/held-lock.js';
import { batchOf } from '../store/capabilities.js';
import type { Debts } from '../store/client/debts.js';
import type { ClaimTerms } from '../store/client/session-calls.js';
import type { Extension, ExtendStatus } from '../store/contract/index.js';
import { claimTerms } from './claim-terms.js';
import type { WorkerContext } from './context.js';
import { WakeUps } from './wake-ups.js';

export class ManualJobs {
  readonly #context: WorkerContext;
  readonly #locks: JobLocks;
  readonly #aliases = new Map<HeldLock, string>();
  readonly #waiting = new Set<WakeUps>();

  constructor(context: WorkerContext, debts: Debts) {
    this.#context = context;
    const { queue, calls, owner, table, opts } = context;
    this.#locks = new JobLocks({
      queue,
      calls,
      owner,
      table,
      debts,
      ready: () => context.ready(),
      lockDuration: opts.lockDuration,
      by: opts.name,
      onEnded: (lock) => this.#dropAlias(lock),
    });
  }

  /** Takes the next job of the queue. Waits up to `waitMs` for one. The caller's `alias` stands for the token in later calls. */
  async take(waitMs: number, alias?: string): Promise<TakenJob | undefined> {
    const waitUntil = systemClock.monotonic() + waitMs;
    let wakeUps: WakeUps | undefined;
    try {
      for (;;) {
        const { taken, claimed } = await this.#locks.claim(this.#claimTerms());
        if (taken !== undefined) this.#setAlias(taken.lock, alias);
        if (taken !== undefined || this.#locks.isStopped) return taken;
        if (claimed?.sessionAlive === false) continue;
        const left = waitUntil - systemClock.monotonic();
        if (left <= 0) return undefined;
        if (wakeUps !== undefined) {
          await wakeUps.next(Math.min(left, claimed?.nextInMs ?? left));
        } else {
          // Claim once more after this: a job that came before the watch began caused no wake-up.
          wakeUps = new WakeUps(await this.#context.ready(), this.#context.queue);
          this.#waiting.add(wakeUps);
        }
        if (this.#locks.isStopped) return undefined;
      }
    } finally {
      if (wakeUps !== undefined) this.#waiting.delete(wakeUps);
      wakeUps?.end();
    }
  }

  takeById(jobId: string): Promise<TakenJob | undefined> {
    return this.#locks.takeById(jobId);
  }

  /** With `fetchNext`, the next job gets the alias of the settled one. */
  async settle(outcome: Outcome, fetchNext: boolean): Promise<{ status: SettleStatus; next?: ClaimedJob }> {
    const lock = this.#context.table.get(outcome.token);
    const alias = lock === undefined ? undefined : this.#aliases.get(lock);
    const { status, next } = await this.#locks.settle(outcome, fetchNext ? this.#claimTerms() : undefined);
    if (next === undefined) return { status };
    this.#setAlias(next.lock, alias);
    return { status, next: next.job };
  }

  /** Extends all locks, in batches. Returns the ids of the jobs whose locks are lost. */
  async extendAll(extensions: Extension[]): Promise<string[]> {
    const { capabilities } = await this.#context.ready();
    const batch = batchOf(capabilities);
    const statuses: ExtendStatus[] = [];
    for (let first = 0; first < extensions.length; first += batch) {
      statuses.push(...(await this.#extend(extensions.slice(first, first + batch))));
    }
    return extensions.filter((_, index) => statuses[index] === 'lost' || statuses[index] === 'missing').map(({ jobId }) => jobId);
  }

  async extend(extension: Extension): Promise<boolean> {
    return (await this.#extend([extension]))[0] === 'done';
  }

  /** Returns true if the job was taken by hand. */
  forget(lock: HeldLock): boolean {
    return this.#locks.forget(lock);
  }

  /** Ends all waiting for jobs. */
  stop(): void {
    this.#locks.stop();
    for (const wakeUps of this.#waiting) wakeUps.wake();
  }

  handBack(): Promise<void> {
    return this.#locks.handBack();
  }

  #extend(extensions: Extension[]): Promise<ExtendStatus[]> {
    return this.#locks.extend(extensions.map((extension) => ({ ...extension, token: this.#realToken(extension) })));
  }

  #realToken({ jobId, token }: Extension): string {
    return aliasedLock(this.#context.queue, jobId, token)?.lock.token ?? token;
  }

  #setAlias(lock: HeldLock, alias: string | undefined): void {
    if (alias === undefined) return;
    const context: Aliased['context'] = {
      ready: () => this.#context.ready(),
      settle: (outcome, fetchNext) => this.settle(outcome, fetchNext),
      extend: (jobId, token, durationMs) => this.extend({ jobId, token, durationMs }),
    };
    setAlias(this.#context.queue, lock.jobId, alias, { lock, context });
    this.#aliases.set(lock, alias);
  }

  #dropAlias(lock: HeldLock): void {
    const alias = this.#aliases.get(lock);
    if (alias === undefined) return;
    this.#aliases.delete(lock);
    dropAlias(this.#context.queue, lock.jobId, alias, lock);
  }

  #claimTerms(): ClaimTerms {
    const { opts } = this.#context;
    return { ...claimTerms(opts, 1), timedMs: opts.lockDuration };
  }
}
