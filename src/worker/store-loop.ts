// Delivers outcomes and claims the next jobs, in one call to the store. The outbox holds the outcomes; a receiver (Runs) takes the claimed
// jobs. One call is in flight at a time (on some stores one in each lane). Runs that end meanwhile go with the next call, so batches grow
// with the load, and a lone job waits for at most one turn of the loop. A slot is free again only when the store has acknowledged its
// outcome, unless `prefetch` allows more jobs in hand.
import { toError } from '../errors.js';
import type { Outcome } from '../job/outcome.js';
import type { ClaimedJob } from '../job/record.js';
import { systemClock } from '../runtime/clock.js';
import { LazyTimer } from '../runtime/lazy-timer.js';
import { setImmediate } from '../runtime/timers.js';
import { batchOf, MAX_BATCH } from '../store/capabilities.js';
import type { Debts } from '../store/client/debts.js';
import type { Substitute } from '../store/client/refusal.js';
import type { CallReply } from '../store/client/session-calls.js';
import type { ClaimReply, Store } from '../store/contract/index.js';
import { claimTerms } from './claim-terms.js';
import type { WorkerContext } from './context.js';
import type { Delivery, Outbox, OutboxListener } from './outbox.js';
import { type AnsweredCall, Reconciler } from './reconciler.js';
import { loseSession } from './session-loss.js';

/**
 * How many ms calls that reply within the same turn of the loop (a store in memory) may follow one another before the loop gets its turn.
 */
const CHAINED_MS = 10;

export interface JobReceiver {
  /** Takes over claimed jobs. `more`: the store may have more of them now. Before it returns, their locks are tracked, and the jobs count as in hand. */
  accept(jobs: ClaimedJob[], reply: CallReply, more: boolean): void;
  /** Called if the queue is paused: jobs that were claimed and have not begun must not begin. */
  handBackAhead(): void;
}

export class StoreLoop implements OutboxListener {
  readonly #context: WorkerContext;
  readonly #outbox: Outbox;
  /** Undefined if jobs are taken by hand: then nothing is claimed here. */
  readonly #receiver: JobReceiver | undefined;
  readonly #reconciler: Reconciler;
  readonly #debts: Debts;
  /** The longest time between two claims on an empty queue, in ms. */
  readonly #idleMs: number;
  /** The most outcomes, and the most jobs to claim, of one call: keeps the call short for the store. */
  #batch = MAX_BATCH;
  /** Lanes without a call in flight. */
  #free = [0];
  #lanes = 1;
  #claiming = false;
  #hungry = true;
  #scheduled = false;
  /** How many jobs the calls in flight may bring beyond the slots that their outcomes free. */
  #expected = 0;
  #wakeUps = 0;
  #busy = false;
  /**
   * When a call last started in its own turn of the loop, and when the clock was read last: after the handlers of the last call had
   * begun.
   */
  #turnedAt = 0;
  #readAt = 0;
  /** The last call that got a reply. */
  #answered: AnsweredCall | undefined;
  readonly #timer = new LazyTimer(() => {
    this.#ticked = true;
    this.wake();
  });
  /** The timer fired since the last search for debts. */
  #ticked = false;
  #idleWaiters: (() => void)[] = [];
  #unwatch: (() => void) | undefined;

  constructor(context: WorkerContext, outbox: Outbox, debts: Debts, receiver: JobReceiver | undefined) {
    this.#context = context;
    this.#debts = debts;
    this.#outbox = outbox;
    this.#receiver = receiver;
    this.#reconciler = new Reconciler(context, outbox);
    this.#idleMs = context.opts.drainDelay * 1000;
    outbox.listener = this;
  }

  /** Called when the store is open and no call is in flight: keeps to the store's limits, and is woken by the store from now on. */
  attach(store: Store): void {
    const { queue, health } = this.#context;
    const { lanes = 1 } = store.capabilities;
    this.#batch = batchOf(store.capabilities);
    this.#lanes = lanes;
    this.#free = Array.from({ length: lanes }, (_, index) => lanes - 1 - index);
    const woken = (): void => {
      health.woken();
      this.wake();
    };
    this.#unwatch = store.watch(queue, woken, 'jobs');
  }

  detach(): void {
    this.#unwatch?.();
  }

  startClaiming(): void {
    this.#debts.start();
    this.#claiming = true;
    this.wake();
  }

  stopClaiming(): void {
    this.#claiming = false;
    this.#debts.stop();
    this.#timer.end();
  }

  /** Claims again: there may be jobs to claim. */
  wake(): void {
    this.#wakeUps += 1;
    this.#hungry = true;
    this.#schedule();
  }

  onDelivery(): void {
    // If nothing runs, no other run can end in this turn and join the call, so the call starts at once. `wake` does not do that: a
    // process that adds a job and runs it expects the reply of `add` first.
    const isAlone = this.#inFlight === 0 && this.#context.slots.inHand === this.#outbox.deliveries;
    if (isAlone && this.#readAt - this.#turnedAt < CHAINED_MS) void this.#turn();
    else this.#schedule();
  }

  onReturn(): void {
    this.#schedule();
  }

  onSlotFreed(): void {
    this.wake();
  }

  /** Resolves when nothing runs and every outcome is acknowledged. */
  async idle(): Promise<void> {
    if (!this.#isIdle()) await new Promise<void>((resolve) => this.#idleWaiters.push(resolve));
  }

  #isIdle(): boolean {
    return this.#context.slots.inHand === 0 && this.#outbox.isEmpty && this.#inFlight === 0;
  }

  get #inFlight(): number {
    return this.#lanes - this.#free.length;
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
    return this.#free.length > 0 && this.#outbox.deliveries >= Math.ceil(this.#most / (2 * this.#lanes));
  }

  /** The most jobs that may be in hand. */
  get #most(): number {
    const { concurrency, prefetch } = this.#context.slots;
    return concurrency + prefetch;
  }

  async #turn(): Promise<void> {
    // Divide the outcomes among the lanes. Otherwise all would always go in one lane, and come back in one.
    const share = Math.min(this.#batch, Math.ceil(this.#most / this.#lanes));
    const deliveries = this.#outbox.takeDeliveries(share);
    const outcomes = deliveries.map(({ outcome }) => outcome);
    this.#outbox.moveReturning(outcomes, this.#batch);
    const wanted = this.#claiming && (outcomes.length > 0 || this.#hungry) && this.#isSetUp();
    const room = this.#context.slots.roomAfter(deliveries.length) - this.#expected;
    const count = wanted ? Math.max(0, Math.min(room, this.#batch)) : 0;
    if (outcomes.length > 0 || count > 0) {
      // Outcomes that leave no room yet, such as half of a batch: whichever call frees the room, the jobs for it are still to be claimed.
      this.#hungry = wanted && count === 0;
      await this.#call(deliveries, outcomes, count);
    } else if (this.#claiming) {
      await this.#standBy();
    }
    this.#next();
  }

  /** Without the settings of the queue, a claim could break a limit. Claims go on when the store has them. */
  #isSetUp(): boolean {
    const { queueSetup, emitter } = this.#context;
    if (queueSetup.isMade) return true;
    // Rest until then: a hungry loop would turn without end.
    this.#hungry = false;
    queueSetup.set().then(
      () => this.wake(),
      (thrown: unknown) => void emitter.emit('error', toError(thrown)),
    );
    return false;
  }

  /** Nothing to deliver and nothing to claim: all slots are taken for as long as their jobs run. */
  async #standBy(): Promise<void> {
    if (!this.#timer.isRunning) this.#timer.start(this.#idleMs);
    // While all slots are taken, no claim returns `undone`, so search for debts here.
    if (this.#ticked) this.#debts.search();
    this.#ticked = false;
    const answered = this.#answered;
    // The sweep hands back the jobs of a lost session.
    if (answered?.session.memory.alive !== true || !this.#isReconcileDue()) return;
    const lane = this.#free.pop() ?? 0;
    await this.#reconciler.reconcile(answered);
    this.#free.push(lane);
  }

  async #call(deliveries: Delivery[], outcomes: Outcome[], count: number): Promise<void> {
    const { calls, opts, slots } = this.#context;
    const lane = this.#free.pop() ?? 0;
    const expected = Math.max(0, count - deliveries.length);
    this.#expected += expected;
    const wakeUps = this.#wakeUps;
    if (this.#outbox.deliveries > 0) this.#schedule();
    try {
      const substitute: Substitute = (index, refusal) => deliveries[index]?.substitute(refusal);
      const terms = count > 0 ? claimTerms(opts, count) : undefined;
      const sentAt = slots.prefetch > 0 ? systemClock.monotonic() : 0;
      const reply = await calls.perform(outcomes, terms, lane, substitute);
      if (sentAt > 0) slots.pace.answered(systemClock.monotonic() - sentAt);
      for (let n = 0; n < deliveries.length; n += 1) {
        deliveries[n]?.settled(reply.results[n] ?? 'missing', undefined, reply.substituted?.get(n));
      }
      // The call went without its claim, because the settings of the queue are not made for its session: `#isSetUp` waits for them.
      if (count > 0 && reply.claimed === undefined) this.#hungry = true;
      const missed = reply.claimed && this.#debts.claimed(reply.claimed);
      this.#take(reply, count, missed === undefined ? [] : await this.#keepRoom(Math.min(count, deliveries.length), missed));
      this.#answered = { session: reply.session, seq: reply.seq };
      if (reply.retried || this.#isReconcileDue()) await this.#reconciler.reconcile(reply);
    } catch (thrown) {
      for (const delivery of deliveries) delivery.settled('unknown', toError(thrown));
    }
    if (wakeUps !== this.#wakeUps) this.#hungry = true;
    this.#expected -= expected;
    this.#free.push(lane);
  }

  /** Keeps another lane from claiming into the room of jobs that are claimed, and in hand only when `work` has ended. */
  async #keepRoom<T>(jobs: number, work: Promise<T>): Promise<T> {
    this.#expected += jobs;
    try {
      return await work;
    } finally {
      this.#expected -= jobs;
    }
  }

  /** `missed`: jobs that are not to run. */
  #take(reply: CallReply, count: number, missed: ClaimedJob[]): void {
    const claimed = reply.claimed;
    if (claimed === undefined) return;
    if (!claimed.sessionAlive) {
      loseSession(this.#context, reply.session);
      this.#hungry = true;
      return;
    }
    const more = claimed.jobs.length === count || claimed.more === true;
    if (more) this.#hungry = true;
    if (claimed.paused) this.#receiver?.handBackAhead();
    if (missed.length > 0) this.#outbox.skip(missed);
    const jobs = missed.length > 0 ? claimed.jobs.filter((job) => !missed.includes(job)) : claimed.jobs;
    // The worker was paused or closed since the call was sent, or has given up what it claimed. The jobs never started, so they go back unchanged.
    if (this.#claiming && !reply.givenUp) this.#receiver?.accept(jobs, reply, more);
    else this.#outbox.handBack(jobs);
    this.#emitDrained(claimed);
    this.#waitFor(claimed);
  }

  #emitDrained({ jobs, drained }: ClaimReply): void {
    if (jobs.length > 0) this.#busy = true;
    else if (this.#busy && drained) {
      this.#busy = false;
      this.#context.emitter.emit('drained');
    }
  }

  #waitFor({ nextInMs, limitedMs }: ClaimReply): void {
    if (!this.#claiming) return;
    const ms = Math.min(this.#idleMs, nextInMs ?? Number.POSITIVE_INFINITY, limitedMs ?? Number.POSITIVE_INFINITY);
    this.#timer.start(ms);
  }

  #isReconcileDue(): boolean {
    this.#readAt = systemClock.monotonic();
    return this.#reconciler.isDue(this.#readAt);
  }

  #next(): void {
    if (this.#isIdle()) {
      for (const resolve of this.#idleWaiters.splice(0)) resolve();
    }
    if (!this.#outbox.isEmpty || (this.#hungry && this.#claiming && this.#context.slots.roomAfter(0) > 0)) this.#schedule();
  }
}
