// OUT and DONE in one motion: outcomes of finished runs go to the store together, and the same call brings the next jobs for the slots
// that they free. One call is in flight at a time; what ends meanwhile goes with the next one, so batches grow with the load and a
// lone job waits for no more than a turn of the loop. A slot is free again only when the store has acknowledged its outcome.
import { toError } from '../errors.js';
import type { HeldLock } from '../lock/held-lock.js';
import type { Session } from '../lock/session.js';
import type { Outcome, SettleStatus } from '../job/outcome.js';
import type { ClaimedJob } from '../job/record.js';
import { MAX_BATCH } from '../store/capabilities.js';
import type { ClaimReply } from '../store/contract.js';
import type { CallReply, Calls, ClaimWish } from '../lock/calls.js';
import type { Slots } from './slots.js';

export interface Delivery {
  outcome: Outcome;
  /** Its run occupies a slot until the store has answered. */
  occupies: boolean;
  /** 'unknown': the worker was closed before the store answered. */
  settled(status: SettleStatus | 'unknown', error?: Error): void;
}

export interface ExchangeOptions {
  calls: Calls;
  slots: Slots;
  wish(count: number): ClaimWish;
  /**
   * Takes a claimed job on: its lock is tracked and a slot is occupied before this returns. Answers how to begin its run. Undefined, or
   * false from beginning: its lock cannot be trusted any more, and nothing was begun.
   */
  accept(job: ClaimedJob, reply: CallReply): (() => boolean) | undefined;
  sessionGone(session: Session): void;
  /** After failed tries: answers the locks that the store holds for us and we do not know of. */
  strays(reply: CallReply): Promise<Pick<HeldLock, 'jobId' | 'token'>[]>;
  drained(): void;
  onError(error: Error): void;
  /** The longest time between two looks at an empty queue. */
  idleMs: number;
}

export class Exchange {
  /** Outcomes, and jobs to claim, of one call: keeps it short for the store. */
  batch = MAX_BATCH;
  readonly #options: ExchangeOptions;
  #pending: Delivery[] = [];
  #claiming = false;
  #hungry = true;
  #scheduled = false;
  #inFlight = false;
  #wakeUps = 0;
  #busy = false;
  #timer: NodeJS.Timeout | undefined;
  #idleWaiters: (() => void)[] = [];

  constructor(options: ExchangeOptions) {
    this.#options = options;
  }

  startClaiming(): void {
    this.#claiming = true;
    this.wake();
  }

  stopClaiming(): void {
    this.#claiming = false;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** There may be something to claim. */
  wake(): void {
    this.#wakeUps += 1;
    this.#hungry = true;
    this.#schedule();
  }

  deliver(delivery: Delivery): void {
    this.#pending.push(delivery);
    this.#schedule();
  }

  /** Resolves when nothing runs and every outcome is acknowledged. */
  async idle(): Promise<void> {
    if (!this.#isIdle()) await new Promise<void>((resolve) => this.#idleWaiters.push(resolve));
  }

  /** A run ended that had nothing to deliver. */
  slotFreed(): void {
    this.wake();
  }

  #isIdle(): boolean {
    return this.#options.slots.running === 0 && this.#pending.length === 0 && !this.#inFlight;
  }

  #schedule(): void {
    if (this.#scheduled || this.#inFlight) return;
    this.#scheduled = true;
    // Not a microtask: all runs that end in this turn shall go together.
    setImmediate(() => {
      this.#scheduled = false;
      void this.#turn();
    });
  }

  async #turn(): Promise<void> {
    const deliveries = this.#pending.length > this.batch ? this.#pending.splice(0, this.batch) : this.#pending;
    if (deliveries === this.#pending) this.#pending = [];
    const free = this.#claiming ? this.#options.slots.freeAfter(deliveries.filter(({ occupies }) => occupies).length) : 0;
    const count = deliveries.length > 0 || this.#hungry ? Math.min(free, this.batch) : 0;
    if (deliveries.length > 0 || count > 0) {
      this.#inFlight = true;
      const wakeUps = this.#wakeUps;
      this.#hungry = false;
      try {
        const outcomes = deliveries.map(({ outcome }) => outcome);
        const reply = await this.#options.calls.perform(outcomes, count > 0 ? this.#options.wish(count) : undefined);
        deliveries.forEach(({ settled }, index) => settled(reply.results[index] ?? 'missing'));
        this.#take(reply, count);
        if (reply.retried) await this.#reconcile(reply);
      } catch (thrown) {
        for (const { settled } of deliveries) settled('unknown', toError(thrown));
      }
      if (wakeUps !== this.#wakeUps) this.#hungry = true;
      this.#inFlight = false;
    }
    this.#next();
  }

  #take(reply: CallReply, count: number): void {
    const claimed = reply.claimed;
    if (claimed === undefined) return;
    if (!claimed.sessionAlive) {
      this.#options.sessionGone(reply.session);
      this.#hungry = true;
      return;
    }
    if (claimed.jobs.length === count) this.#hungry = true;
    // All are taken on before the first begins: its handler may block the loop, and the others' locks must be seen meanwhile.
    const begin = claimed.jobs.map((job) => (this.#claiming ? this.#options.accept(job, reply) : undefined));
    claimed.jobs.forEach(({ id, token }, index) => {
      // Paused, closed, frozen or blocked since the call was sent: nobody has seen the job, so it goes back as it came.
      if (begin[index]?.() !== true) this.#pending.push(handBack(id, token));
    });
    this.#tellDrained(claimed);
    this.#waitFor(claimed);
  }

  #tellDrained({ jobs, drained }: ClaimReply): void {
    if (jobs.length > 0) this.#busy = true;
    else if (this.#busy && drained) {
      this.#busy = false;
      this.#options.drained();
    }
  }

  #waitFor({ nextInMs, limitedMs }: ClaimReply): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (!this.#claiming) return;
    const ms = Math.min(this.#options.idleMs, nextInMs ?? Number.POSITIVE_INFINITY, limitedMs ?? Number.POSITIVE_INFINITY);
    // Not unref'd: a worker that waits for jobs keeps its process alive.
    this.#timer = setTimeout(() => this.wake(), Math.max(1, Math.ceil(ms)));
  }

  async #reconcile(reply: CallReply): Promise<void> {
    try {
      for (const { jobId, token } of await this.#options.strays(reply)) this.#pending.push(handBack(jobId, token));
    } catch (error) {
      this.#options.onError(toError(error));
    }
  }

  #next(): void {
    if (this.#isIdle()) {
      for (const resolve of this.#idleWaiters.splice(0)) resolve();
    }
    if (this.#pending.length > 0 || (this.#hungry && this.#claiming && this.#options.slots.freeAfter(0) > 0)) this.#schedule();
  }
}

function handBack(jobId: string, token: string): Delivery {
  return { outcome: { kind: 'release', jobId, token }, occupies: false, settled: () => undefined };
}
