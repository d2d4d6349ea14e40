// Delivers outcomes and claims the next jobs, in one call to the store. The worker starts it; Runs hands it the outcomes. One call is in
// flight at a time (on some stores one in each lane). Runs that end meanwhile go with the next call, so batches grow with the load, and a
// lone job waits for at most one turn of the loop. A slot is free again only when the store has acknowledged its outcome, unless
// `prefetch` allows more jobs in hand.
import { type HoldfastError, toError } from '../errors.js';
import type { Substitute, Substituted } from '../store/client/refusal.js';
import type { Session } from '../session/session.js';
import type { Outcome, SettleStatus } from '../job/outcome.js';
import type { ClaimedJob } from '../job/record.js';
import { withinReply } from '../store/budget.js';
import { MAX_BATCH } from '../store/capabilities.js';
import type { ClaimReply } from '../store/contract/index.js';
import type { CallReply, SessionCalls, ClaimTerms } from '../store/client/session-calls.js';
import { systemClock } from '../runtime/clock.js';
import { LazyTimer } from '../runtime/lazy-timer.js';
import type { Slots } from './slots.js';
import { setImmediate } from '../runtime/timers.js';

/**
 * How many ms calls that reply within the same turn of the loop (a store in memory) may follow one another before the loop gets its turn.
 */
const CHAINED_MS = 10;

export interface Delivery {
  outcome: Outcome;
  /** Called if the store refuses the outcome permanently. Returns the outcome to settle instead, or undefined if there is none. */
  substitute(refusal: HoldfastError): Outcome | undefined;
  /** 'unknown': the worker was closed before the store replied. `substituted`: the store took that in place of the outcome. */
  settled(status: SettleStatus | 'unknown', error?: Error, substituted?: Substituted): void;
}

/** A job under the lock of one claim. */
export type ClaimRef = Pick<ClaimedJob, 'id' | 'token'>;

export type AnsweredCall = Pick<CallReply, 'session' | 'seq'>;

export interface StoreLoopOptions {
  calls: SessionCalls;
  slots: Slots;
  wish(count: number): ClaimTerms;
  /** Takes over claimed jobs. Before it returns, their locks are tracked, and the jobs count as in hand. */
  accept(jobs: ClaimedJob[], reply: CallReply): void;
  /** Called if the queue is paused: jobs that were claimed and have not begun must not begin. */
  queuePaused(): void;
  sessionGone(session: Session): void;
  /** Returns the locks that the store holds for this worker and that the worker does not know. */
  strays(call: AnsweredCall): Promise<ClaimRef[]>;
  drained(): void;
  onError(error: Error): void;
  /**
   * How often, in ms, to check for strays although every reply came. A store may go back in time (a replica that took over, a restored
   * backup). It may then list this worker as owner of jobs that the worker has finished, and no other worker could ever claim them.
   */
  reconcileMs: number;
  /** The longest time between two claims on an empty queue, in ms. */
  idleMs: number;
}

export class StoreLoop {
  /** The most outcomes, and the most jobs to claim, of one call: keeps the call short for the store. */
  batch = MAX_BATCH;
  readonly #options: StoreLoopOptions;
  /** Lanes without a call in flight. */
  #free = [0];
  #lanes = 1;
  #pending: Delivery[] = [];
  /** Outcomes of claimed jobs that go back, in the order in which they were claimed. */
  #returning: Outcome[] = [];
  #claiming = false;
  #hungry = true;
  #scheduled = false;
  /** How many jobs the calls in flight may bring beyond the slots that their outcomes free. */
  #expected = 0;
  #wakeUps = 0;
  #busy = false;
  #reconcileAt: number;
  /**
   * When a call last started in its own turn of the loop, and when the clock was read last: after the handlers of the last call had
   * begun.
   */
  #turnedAt = 0;
  #readAt = 0;
  /** The last call that got a reply. */
  #answered: AnsweredCall | undefined;
  readonly #timer = new LazyTimer(() => this.wake());
  #idleWaiters: (() => void)[] = [];

  constructor(options: StoreLoopOptions) {
    this.#options = options;
    this.#reconcileAt = systemClock.monotonic() + options.reconcileMs;
  }

  /** Must be set while no call is in flight. */
  set lanes(count: number) {
    this.#lanes = count;
    this.#free = Array.from({ length: count }, (_, index) => count - 1 - index);
  }

  startClaiming(): void {
    this.#claiming = true;
    this.wake();
  }

  stopClaiming(): void {
    this.#claiming = false;
    this.#timer.end();
  }

  /** Claims again: there may be jobs to claim. */
  wake(): void {
    this.#wakeUps += 1;
    this.#hungry = true;
    this.#schedule();
  }

  deliver(delivery: Delivery): void {
    this.#pending.push(delivery);
    // If nothing runs, no other run can end in this turn and join the call, so the call starts at once. `wake` does not do that: a
    // process that adds a job and runs it expects the reply of `add` first.
    const isAlone = this.#inFlight === 0 && this.#options.slots.inHand === this.#pending.length;
    if (isAlone && this.#readAt - this.#turnedAt < CHAINED_MS) void this.#turn();
    else this.#schedule();
  }

  /** Hands back jobs that were not begun, to the front of waiting, in their old order. */
  handBack(jobs: ClaimRef[]): void {
    this.#giveBack('return', jobs);
  }

  #giveBack(kind: 'return' | 'release', jobs: ClaimRef[]): void {
    for (const { id, token } of jobs) this.#returning.push({ kind, jobId: id, token });
    this.#schedule();
  }

  /** Resolves when nothing runs and every outcome is acknowledged. */
  async idle(): Promise<void> {
    if (!this.#isIdle()) await new Promise<void>((resolve) => this.#idleWaiters.push(resolve));
  }

  /** Called when a run ended that had nothing to deliver. */
  slotFreed(): void {
    this.wake();
  }

  #isIdle(): boolean {
    return this.#options.slots.inHand === 0 && !this.#hasToDeliver() && this.#inFlight === 0;
  }

  get #inFlight(): number {
    return this.#lanes - this.#free.length;
  }

  #hasToDeliver(): boolean {
    return this.#pending.length > 0 || this.#returning.length > 0;
  }

  #schedule(): void {
    if (this.#scheduled || !this.#isWorthIt()) return;
    this.#scheduled = true;
    // Not a microtask: all runs that end in this turn go in one call.
    setImmediate(() => {
      this.#scheduled = false;
      this.#turnedAt = systemClock.monotonic();
      if (this.#isWorthIt()) void this.#turn();
    });
  }

  /**
   * True if a call should start now. Beside a call in flight, a second one starts only if it carries a fair part of the jobs in hand:
   * smaller calls cost the store more than they gain.
   */
  #isWorthIt(): boolean {
    if (this.#inFlight === 0) return true;
    return this.#free.length > 0 && this.#pending.length >= Math.ceil(this.#most / (2 * this.#lanes));
  }

  /** The most jobs that may be in hand. */
  get #most(): number {
    const { concurrency, prefetch } = this.#options.slots;
    return concurrency + prefetch;
  }

  async #turn(): Promise<void> {
    // Divide the outcomes among the lanes. Otherwise all would always go in one lane, and come back in one.
    const share = Math.min(this.batch, Math.ceil(this.#most / this.#lanes));
    const deliveries = this.#pending.splice(0, withinReply(this.#pending.slice(0, share), sizeOf).length);
    const outcomes = deliveries.map(({ outcome }) => outcome);
    // The store puts each job to the very front, so send the last one first.
    while (this.#returning.length > 0 && outcomes.length < this.batch) outcomes.push(this.#returning.pop() as Outcome);
    const wanted = this.#claiming && (outcomes.length > 0 || this.#hungry);
    const room = this.#options.slots.roomAfter(deliveries.length) - this.#expected;
    const count = wanted ? Math.max(0, Math.min(room, this.batch)) : 0;
    if (outcomes.length > 0 || count > 0) await this.#call(deliveries, outcomes, count);
    else if (this.#claiming) await this.#standBy();
    this.#next();
  }

  /** Nothing to deliver and nothing to claim: all slots are taken for as long as their jobs run. */
  async #standBy(): Promise<void> {
    if (!this.#timer.isRunning) this.#timer.start(this.#options.idleMs);
    const answered = this.#answered;
    // The sweep hands back the jobs of a lost session.
    if (answered?.session.memory.alive !== true || !this.#isReconcileDue()) return;
    const lane = this.#free.pop() ?? 0;
    await this.#reconcile(answered);
    this.#free.push(lane);
  }

  async #call(deliveries: Delivery[], outcomes: Outcome[], count: number): Promise<void> {
    const lane = this.#free.pop() ?? 0;
    const expected = Math.max(0, count - deliveries.length);
    this.#expected += expected;
    const wakeUps = this.#wakeUps;
    this.#hungry = false;
    if (this.#pending.length > 0) this.#schedule();
    try {
      const substitute: Substitute = (index, refusal) => deliveries[index]?.substitute(refusal);
      const wish = count > 0 ? this.#options.wish(count) : undefined;
      const reply = await this.#options.calls.perform(outcomes, wish, lane, substitute);
      for (let n = 0; n < deliveries.length; n += 1) {
        deliveries[n]?.settled(reply.results[n] ?? 'missing', undefined, reply.substituted?.get(n));
      }
      this.#take(reply, count);
      this.#answered = { session: reply.session, seq: reply.seq };
      if (reply.retried || this.#isReconcileDue()) await this.#reconcile(reply);
    } catch (thrown) {
      for (const delivery of deliveries) delivery.settled('unknown', toError(thrown));
    }
    if (wakeUps !== this.#wakeUps) this.#hungry = true;
    this.#expected -= expected;
    this.#free.push(lane);
  }

  #take(reply: CallReply, count: number): void {
    const claimed = reply.claimed;
    if (claimed === undefined) return;
    if (!claimed.sessionAlive) {
      this.#options.sessionGone(reply.session);
      this.#hungry = true;
      return;
    }
    if (claimed.jobs.length === count || claimed.more === true) this.#hungry = true;
    if (claimed.paused) this.#options.queuePaused();
    // The worker was paused or closed since the call was sent. The jobs never started, so they go back unchanged.
    if (this.#claiming) this.#options.accept(claimed.jobs, reply);
    else this.handBack(claimed.jobs);
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
    if (!this.#claiming) return;
    const ms = Math.min(this.#options.idleMs, nextInMs ?? Number.POSITIVE_INFINITY, limitedMs ?? Number.POSITIVE_INFINITY);
    this.#timer.start(ms);
  }

  #isReconcileDue(): boolean {
    this.#readAt = systemClock.monotonic();
    return this.#readAt >= this.#reconcileAt;
  }

  async #reconcile(call: AnsweredCall): Promise<void> {
    this.#reconcileAt = systemClock.monotonic() + this.#options.reconcileMs;
    try {
      // The jobs may have run here, if the store went back in time. So release them, which keeps the counted start.
      this.#giveBack('release', await this.#options.strays(call));
    } catch (error) {
      this.#options.onError(toError(error));
    }
  }

  #next(): void {
    if (this.#isIdle()) {
      for (const resolve of this.#idleWaiters.splice(0)) resolve();
    }
    if (this.#hasToDeliver() || (this.#hungry && this.#claiming && this.#options.slots.roomAfter(0) > 0)) this.#schedule();
  }
}

function sizeOf({ outcome }: Delivery): number {
  return outcome.kind === 'completed' ? outcome.value.length : 0;
}
