// The renewal loop, used by the renewer on the worker's event loop and by the one in the thread. All sessions of a store that are due go
// into one call. A failed call is reported and retried soon. A call that hangs is reported, and the next call is still made on time.
import { HoldfastError, toError } from '../errors.js';
import type { Clock } from '../runtime/clock.js';
import type { Notice, Renewal, RenewReply, Store } from '../store/contract/index.js';
import { SessionChecks } from './session-checks.js';
import type { SessionPlan } from '../session/renewer.js';
import type { SessionMemory } from '../session/session-memory.js';
import { now, trustUntil, type Moment } from '../session/trust.js';
import { clearTimeout, setTimeout } from '../runtime/timers.js';

export interface Renewed {
  plan: SessionPlan;
  memory: SessionMemory;
  /** Called before each renewal; false skips it (the watchdog's ceiling). */
  mayRenew?(): boolean;
  onRenewed(): void;
  onNoticed(notices: Notice[]): void;
  onLost(): void;
  onError(error: Error): void;
}

interface Entry {
  renewed: Renewed;
  /** Number of the latest notice that was received. Sent with the next renewal. */
  acked: number;
  /** The number of slots that this loop sent to the store last. */
  slots?: number;
  dueAt: number;
}

const MIN_RETRY_MS = 20;
const MAX_RETRY_MS = 1000;
/** The shortest wait for a reply, in ms. The wait is a sixth of the lock's duration: with renewals every half, two more tries fit in. */
const MIN_REPLY_TIMEOUT_MS = 1000;

export class RenewalLoop {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();
  readonly #checks: SessionChecks;
  #timer: NodeJS.Timeout | undefined;
  #wakeAt = Number.POSITIVE_INFINITY;
  /** The latest call. */
  #calling: Promise<void> | undefined;

  /** `isPolled`: the caller calls `look` twice a second. */
  constructor(store: Store, clock: Clock, isPolled = false) {
    this.#store = store;
    this.#clock = clock;
    this.#checks = new SessionChecks(store, clock, (sessionId) => this.#hasten(sessionId), isPolled);
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Adds a session. `firstInMs` 0 renews it at once. Adding a session twice changes nothing. */
  add(renewed: Renewed, firstInMs: number): void {
    if (this.#entries.has(renewed.plan.id)) return;
    this.#entries.set(renewed.plan.id, { renewed, acked: 0, dueAt: this.#clock.monotonic() + firstInMs });
    this.#checks.add(renewed.plan, renewed.memory);
    this.#schedule();
  }

  look(): void {
    this.#checks.look();
  }

  delete(sessionId: string): void {
    this.#entries.delete(sessionId);
    this.#checks.delete(sessionId);
    if (this.#entries.size === 0) this.stop();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#wakeAt = Number.POSITIVE_INFINITY;
    this.#entries.clear();
    this.#checks.stop();
  }

  /**
   * Renews the sessions that are overdue and waits for the reply. Sweepers call this first. When a blocked loop or a frozen process
   * goes on, all its timers fire at once. A sweep before the renewal would then end sessions that can still be renewed.
   */
  async catchUp(): Promise<void> {
    // Two rounds: if the process was frozen during a call, the reply of that call describes a time long past.
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
      // Sessions that are due soon join this call: one round trip renews all, and they stay in step from here on.
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
    const timeout = setTimeout(
      () => {
        late = true;
        const message = 'The store did not answer a lock renewal in time.';
        this.#fail(entries, new HoldfastError('TIMEOUT', message, { retryable: true }));
      },
      Math.max(MIN_REPLY_TIMEOUT_MS, ...entries.map(({ renewed: { plan } }) => Math.min(plan.renewMs, plan.durationMs / 6))),
    );
    timeout.unref();
    try {
      const renewals = entries.map(renewalOf);
      const replies = await this.#store.renew(renewals);
      entries.forEach((entry, index) => {
        const { slots } = renewals[index] as Renewal;
        if (slots !== undefined) entry.slots = slots;
        this.#apply(entry, replies[index] as RenewReply, sentAt);
      });
    } catch (error) {
      // A late failure was already reported as a timeout, and the next renewal is scheduled.
      if (!late) this.#fail(entries, toError(error));
    } finally {
      clearTimeout(timeout);
    }
  }

  #apply(entry: Entry, reply: RenewReply, sentAt: Moment): void {
    const { plan, memory } = entry.renewed;
    // The session was released during the call: its owner no longer listens.
    if (this.#entries.get(plan.id) !== entry) return;
    if (!reply.alive) {
      memory.markLost();
      this.delete(plan.id);
      entry.renewed.onLost();
      return;
    }
    memory.extendTrust(trustUntil(sentAt, plan.durationMs));
    // A renewal ends a suspicion, so its reply also counts as a passed suspicion check.
    memory.extendConfirmation(trustUntil(sentAt, plan.graceMs));
    // A repeated reply may carry notices that were reported before.
    const fresh = reply.notices.filter(({ number }) => number > entry.acked);
    for (const { kind, fence, number } of fresh) {
      if (kind === 'revoked') memory.lose(fence);
      entry.acked = Math.max(entry.acked, number);
    }
    if (fresh.length > 0) entry.renewed.onNoticed(fresh);
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

/** The first renewal of an entry always sends the slots, because the loop does not know what the renewer before it sent. */
function renewalOf({ renewed: { plan, memory }, acked, slots }: Entry): Renewal {
  const renewal: Renewal = { queue: plan.queue, id: plan.id, acked };
  if (memory.slots !== slots) renewal.slots = memory.slots;
  return renewal;
}
