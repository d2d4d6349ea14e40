// OUT and DONE in one motion: outcomes of finished runs go to the store together, and the same call brings the next jobs for the slots
// that they free. A call is in flight at a time (on some stores one in each lane); what ends meanwhile goes with the next one, so
// batches grow with the load and a lone job waits for no more than a turn of the loop. A slot is free again only when the store has
// acknowledged its outcome, unless `prefetch` allows for more in hand than runs.
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

/** Calls that answer within the turn of the loop (a store in memory) follow one another for so long before the loop has its turn. */
const CHAINED_MS = 10;

export interface Delivery {
  outcome: Outcome;
  /** The store refuses the outcome for ever, with this reason: what to settle in its place, if there is anything in it to refuse. */
  substitute(refusal: HoldfastError): Outcome | undefined;
  /** 'unknown': the worker was closed before the store answered. `substituted`: the store took that in place of the outcome. */
  settled(status: SettleStatus | 'unknown', error?: Error, substituted?: Substituted): void;
}

/** A job under the lock of one claim. */
export type ClaimRef = Pick<ClaimedJob, 'id' | 'token'>;

export type AnsweredCall = Pick<CallReply, 'session' | 'seq'>;

export interface StoreLoopOptions {
  calls: SessionCalls;
  slots: Slots;
  wish(count: number): ClaimTerms;
  /** Takes claimed jobs on: their locks are tracked, and they count as in hand, before this returns. */
  accept(jobs: ClaimedJob[], reply: CallReply): void;
  /** The queue is paused: what was claimed and has not begun shall not. */
  queuePaused(): void;
  sessionGone(session: Session): void;
  /** Answers the locks that the store holds for us and we do not know of. */
  strays(call: AnsweredCall): Promise<ClaimRef[]>;
  drained(): void;
  onError(error: Error): void;
  /**
   * How often to ask for strays although every reply came: a store that went back in time (a replica that took over, a restored backup)
   * may hold for us what we have finished, and nobody else would ever be let at it.
   */
  reconcileMs: number;
  /** The longest time between two looks at an empty queue. */
  idleMs: number;
}

export class StoreLoop {
  /** Outcomes, and jobs to claim, of one call: keeps it short for the store. */
  batch = MAX_BATCH;
  readonly #options: StoreLoopOptions;
  /** Lanes that no call is in flight in. */
  #free = [0];
  #lanes = 1;
  #pending: Delivery[] = [];
  /** Of claimed jobs that go back, in the order in which they were claimed. */
  #returning: Outcome[] = [];
  #claiming = false;
  #hungry = true;
  #scheduled = false;
  /** Jobs that calls in flight may bring beyond the slots that their outcomes free. */
  #expected = 0;
  #wakeUps = 0;
  #busy = false;
  #reconcileAt: number;
  /** When a call left in a turn of its own, and when the clock was read last: after the handlers of the last call had begun. */
  #turnedAt = 0;
  #readAt = 0;
  /** The call that was answered last. */
  #answered: AnsweredCall | undefined;
  readonly #timer = new LazyTimer(() => this.wake());
  #idleWaiters: (() => void)[] = [];

  constructor(options: StoreLoopOptions) {
    this.#options = options;
    this.#reconcileAt = systemClock.monotonic() + options.reconcileMs;
  }

  /** Takes effect as long as nothing is in flight. */
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

  /** There may be something to claim. */
  wake(): void {
    this.#wakeUps += 1;
    this.#hungry = true;
    this.#schedule();
  }

  deliver(delivery: Delivery): void {
    this.#pending.push(delivery);
    // When nothing runs, nothing can end in this turn of the loop that would go along. Not so in `wake`: who adds a job and runs it in one
    // process expects to be told first that it was added.
    const isAlone = this.#inFlight === 0 && this.#options.slots.inHand === this.#pending.length;
    if (isAlone && this.#readAt - this.#turnedAt < CHAINED_MS) void this.#turn();
    else this.#schedule();
  }

  /** Puts jobs that were not begun back to the front of waiting, where they stood. */
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

  /** A run ended that had nothing to deliver. */
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
    // Not a microtask: all runs that end in this turn shall go together.
    setImmediate(() => {
      this.#scheduled = false;
      this.#turnedAt = systemClock.monotonic();
      if (this.#isWorthIt()) void this.#turn();
    });
  }

  /**
   * A second call leaves beside one in flight when it has a fair part of the jobs in hand to tell of: smaller ones cost the store more
   * than they gain.
   */
  #isWorthIt(): boolean {
    if (this.#inFlight === 0) return true;
    return this.#free.length > 0 && this.#pending.length >= Math.ceil(this.#most / (2 * this.#lanes));
  }

  /** Jobs that may be in hand at most. */
  get #most(): number {
    const { concurrency, prefetch } = this.#options.slots;
    return concurrency + prefetch;
  }

  async #turn(): Promise<void> {
    // Outcomes are shared out among the lanes, or all would always go in one of them, and come back in one.
    const share = Math.min(this.batch, Math.ceil(this.#most / this.#lanes));
    const deliveries = this.#pending.splice(0, withinReply(this.#pending.slice(0, share), sizeOf).length);
    const outcomes = deliveries.map(({ outcome }) => outcome);
    // Each goes to the very front, so the last of them goes first.
    while (this.#returning.length > 0 && outcomes.length < this.batch) outcomes.push(this.#returning.pop() as Outcome);
    const wanted = this.#claiming && (outcomes.length > 0 || this.#hungry);
    const room = this.#options.slots.roomAfter(deliveries.length) - this.#expected;
    const count = wanted ? Math.max(0, Math.min(room, this.batch)) : 0;
    if (outcomes.length > 0 || count > 0) await this.#call(deliveries, outcomes, count);
    else if (this.#claiming) await this.#standBy();
    this.#next();
  }

  /** Nothing to tell and nothing to ask for: all slots are taken, for as long as their jobs run. */
  async #standBy(): Promise<void> {
    if (!this.#timer.isRunning) this.#timer.start(this.#options.idleMs);
    const answered = this.#answered;
    // What a lost session held is for the sweep.
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
    // Paused or closed since the call was sent: nobody has seen the jobs, so they go back as they came.
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
      // They may have run here, if the store went back in time: the start counts.
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
