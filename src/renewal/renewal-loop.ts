// The one renewal loop, used on the worker's loop and inside the thread. All sessions of a store that are due go into one call.
// A failed call is reported and tried again soon; a call that hangs is reported, and does not keep the next from being made.
import { HoldfastError, toError } from '../errors.js';
import type { Clock } from '../runtime/clock.js';
import type { Renewal, RenewReply, Revocation, Store } from '../store/contract/index.js';
import { SuspicionCheck } from './suspicion-check.js';
import type { SessionPlan } from '../session/renewer.js';
import type { SessionMemory } from '../session/session-memory.js';
import { now, trustUntil, type Moment } from '../session/trust.js';
import { clearTimeout, setTimeout } from '../runtime/timers.js';

export interface Renewed {
  plan: SessionPlan;
  memory: SessionMemory;
  /** Asked before each renewal: false skips it (the watchdog's ceiling). */
  mayRenew?(): boolean;
  onRenewed(): void;
  onRevoked(revocations: Revocation[]): void;
  onLost(): void;
  onError(error: Error): void;
}

interface Entry {
  renewed: Renewed;
  acked: number;
  /** What the store was told last, by this loop. */
  slots?: number;
  dueAt: number;
}

const MIN_RETRY_MS = 20;
const MAX_RETRY_MS = 1000;
/** An answer is waited for through a sixth of the lock's duration, or so long: with the usual beat of a half, two more tries fit in. */
const MIN_PATIENCE_MS = 1000;

export class RenewalLoop {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();
  readonly #hearing: SuspicionCheck;
  #timer: NodeJS.Timeout | undefined;
  #wakeAt = Number.POSITIVE_INFINITY;
  /** The latest call. */
  #calling: Promise<void> | undefined;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
    this.#hearing = new SuspicionCheck(store, clock, (sessionId) => this.#hasten(sessionId));
  }

  get size(): number {
    return this.#entries.size;
  }

  /** `firstInMs` 0 renews at once. Adding a session twice changes nothing. */
  add(renewed: Renewed, firstInMs: number): void {
    if (this.#entries.has(renewed.plan.id)) return;
    this.#entries.set(renewed.plan.id, { renewed, acked: 0, dueAt: this.#clock.monotonic() + firstInMs });
    this.#hearing.add(renewed.plan, renewed.memory);
    this.#schedule();
  }

  delete(sessionId: string): void {
    this.#entries.delete(sessionId);
    this.#hearing.delete(sessionId);
    if (this.#entries.size === 0) this.stop();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#wakeAt = Number.POSITIVE_INFINITY;
    this.#entries.clear();
    this.#hearing.stop();
  }

  /**
   * Renews what is overdue and waits for the answer. Sweepers do so first: when a loop that was blocked or a process that was frozen
   * goes on, all its timers fire at once, and a sweep that came before the renewal would take away what can still be kept.
   */
  async catchUp(): Promise<void> {
    // Twice: the process may have been frozen while a call was under way, whose answer then tells of a time long past.
    for (let round = 0; round < 2; round += 1) {
      if (this.#wakeAt <= this.#clock.monotonic()) {
        clearTimeout(this.#timer);
        this.#tick();
      }
      await this.#calling;
    }
  }

  #hasten(sessionId: string): void {
    const entry = this.#entries.get(sessionId);
    if (entry === undefined) return;
    entry.dueAt = this.#clock.monotonic();
    this.#schedule();
  }

  #schedule(): void {
    let soonest = Number.POSITIVE_INFINITY;
    for (const entry of this.#entries.values()) soonest = Math.min(soonest, entry.dueAt);
    if (soonest === Number.POSITIVE_INFINITY || (this.#timer !== undefined && this.#wakeAt <= soonest)) return;
    clearTimeout(this.#timer);
    this.#wakeAt = soonest;
    this.#timer = setTimeout(() => this.#tick(), Math.max(0, soonest - this.#clock.monotonic()));
    this.#timer.unref();
  }

  #tick(): void {
    this.#timer = undefined;
    this.#wakeAt = Number.POSITIVE_INFINITY;
    const time = this.#clock.monotonic();
    const due: Entry[] = [];
    for (const entry of this.#entries.values()) {
      const { renewMs } = entry.renewed.plan;
      // Those that would be due soon join this call: one round trip for all, and they stay in step from here on.
      if (entry.dueAt > time + renewMs / 4) continue;
      entry.dueAt = time + renewMs;
      if (entry.renewed.mayRenew?.() ?? true) due.push(entry);
    }
    if (due.length > 0) this.#calling = this.#renew(due);
    this.#schedule();
  }

  async #renew(entries: Entry[]): Promise<void> {
    const sentAt = now(this.#clock);
    let late = false;
    const patience = setTimeout(
      () => {
        late = true;
        const message = 'The store did not answer a lock renewal in time.';
        this.#fail(entries, new HoldfastError('TIMEOUT', message, { retryable: true }));
      },
      Math.max(MIN_PATIENCE_MS, ...entries.map(({ renewed: { plan } }) => Math.min(plan.renewMs, plan.durationMs / 6))),
    );
    patience.unref();
    try {
      const renewals = entries.map(renewalOf);
      const replies = await this.#store.renew(renewals);
      entries.forEach((entry, index) => {
        const { slots } = renewals[index] as Renewal;
        if (slots !== undefined) entry.slots = slots;
        this.#apply(entry, replies[index] as RenewReply, sentAt);
      });
    } catch (error) {
      // That it failed has been told, and the next one is under way.
      if (!late) this.#fail(entries, toError(error));
    } finally {
      clearTimeout(patience);
    }
  }

  #apply(entry: Entry, reply: RenewReply, sentAt: Moment): void {
    const { plan, memory } = entry.renewed;
    // Released while the call was under way: its worker no longer listens.
    if (this.#entries.get(plan.id) !== entry) return;
    if (!reply.alive) {
      memory.markLost();
      this.delete(plan.id);
      entry.renewed.onLost();
      return;
    }
    memory.extendTrust(trustUntil(sentAt, plan.durationMs));
    // A renewal ends a suspicion, so it answers that question too.
    memory.extendHearing(trustUntil(sentAt, plan.graceMs));
    // A repeated reply may carry what was told before.
    const fresh = reply.revoked.filter(({ number }) => number > entry.acked);
    for (const { fence, number } of fresh) {
      memory.lose(fence);
      entry.acked = Math.max(entry.acked, number);
    }
    if (fresh.length > 0) entry.renewed.onRevoked(fresh);
    entry.renewed.onRenewed();
  }

  #fail(entries: Entry[], error: Error): void {
    const time = this.#clock.monotonic();
    for (const entry of entries) {
      if (this.#entries.get(entry.renewed.plan.id) !== entry) continue;
      entry.dueAt = Math.min(entry.dueAt, time + Math.min(MAX_RETRY_MS, Math.max(MIN_RETRY_MS, entry.renewed.plan.renewMs / 4)));
      entry.renewed.onError(error);
    }
    this.#schedule();
  }
}

/** The first renewal of an entry always tells the slots: nobody knows what the renewer before it has told. */
function renewalOf({ renewed: { plan, memory }, acked, slots }: Entry): Renewal {
  const renewal: Renewal = { queue: plan.queue, id: plan.id, acked };
  if (memory.slots !== slots) renewal.slots = memory.slots;
  return renewal;
}
