// Asks the store about sessions that hold locks, between their renewals. A reply says two things:
// - Whether the store suspects the process of being dead. Where crash hints watch connections, a server that has lost the connection of a
//   living process lets other sessions in after the grace. A reply is good for one grace from the moment before the check was sent: a
//   suspicion that starts later leaves at least that much time. Without a reply `held` turns false before another session is let in. The
//   locks are not lost by that: the session may still be good.
// - Whether the store holds a notice for the session. Then the session is renewed at once, and the renewal returns the notice. So a cancel
//   from another process reaches the handler within a second, however seldom the session is renewed.
// Each renewal loop has one SessionChecks for its sessions.
import type { Clock } from '../runtime/clock.js';
import type { Store } from '../store/contract/index.js';
import type { SessionPlan } from '../session/renewer.js';
import type { SessionMemory } from '../session/session-memory.js';
import { now, trustUntil } from '../session/trust.js';
import { clearInterval, setInterval } from '../runtime/timers.js';

interface Checked {
  plan: SessionPlan;
  memory: SessionMemory;
}

/** The longest time between two checks, in ms. */
const NOTICE_MS = 500;

/** Returns the interval of the checks. In each grace all replies but one may be lost or late. */
export function askEveryMs(graceMs: number): number {
  return graceMs === 0 ? NOTICE_MS : Math.min(NOTICE_MS, graceMs / 4);
}

export class SessionChecks {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #renewNow: (sessionId: string) => void;
  readonly #checked = new Map<string, Checked>();
  readonly #isPolled: boolean;
  #timer: NodeJS.Timeout | undefined;
  #everyMs = 0;
  #asking = false;

  /**
   * `renewNow`: a renewal ends a suspicion, and returns the notices. `isPolled`: the caller calls `look` twice a second, so sessions that need
   * no reply in their grace need no timer of their own.
   */
  constructor(store: Store, clock: Clock, renewNow: (sessionId: string) => void, isPolled = false) {
    this.#isPolled = isPolled;
    this.#store = store;
    this.#clock = clock;
    this.#renewNow = renewNow;
  }

  add(plan: SessionPlan, memory: SessionMemory): void {
    this.#checked.set(plan.id, { plan, memory });
    this.#setTimer();
  }

  delete(sessionId: string): void {
    if (this.#checked.delete(sessionId)) this.#setTimer();
  }

  stop(): void {
    this.#checked.clear();
    this.#setTimer();
  }

  /** Checks the sessions now, unless a timer checks them as often. */
  look(): void {
    if (this.#timer === undefined) void this.#ask();
  }

  #setTimer(): void {
    const timed = Array.from(this.#checked.values()).filter(({ plan }) => plan.graceMs > 0 || !this.#isPolled);
    const intervals = timed.map(({ plan }) => askEveryMs(plan.graceMs));
    const everyMs = intervals.length === 0 ? 0 : Math.min(...intervals);
    if (everyMs === this.#everyMs) return;
    this.#everyMs = everyMs;
    clearInterval(this.#timer);
    this.#timer = everyMs === 0 ? undefined : setInterval(() => void this.#ask(), everyMs).unref();
  }

  async #ask(): Promise<void> {
    // One check at a time: on a silently dead connection, more pending checks would keep renewals from using another connection.
    if (this.#asking) return;
    const holding = [...this.#checked.values()].filter(({ memory }) => memory.alive && memory.holdsAny);
    if (holding.length === 0) return;
    this.#asking = true;
    const sentAt = now(this.#clock);
    try {
      const replies = await this.#store.checkSessions(holding.map(({ plan: { queue, id } }) => ({ queue, id })));
      holding.forEach(({ plan, memory }, index) => {
        const { unsuspected = false, noticed = false } = replies[index] ?? {};
        if (unsuspected && plan.graceMs > 0) memory.extendConfirmation(trustUntil(sentAt, plan.graceMs));
        const isSuspected = !unsuspected && plan.graceMs > 0;
        if ((isSuspected || noticed) && this.#checked.has(plan.id)) this.#renewNow(plan.id);
      });
    } catch {
      // A failed check is not reported: renewals report a store that does not reply.
    }
    this.#asking = false;
  }
}
