// Checks whether the store suspects a living process of being dead. Where crash hints watch connections, a server that has lost the
// connection of a living process lets other sessions in after the grace. So a session that holds locks asks the store repeatedly.
// A reply is good for one grace from the moment before the check was sent: a suspicion that starts later leaves at least that much time.
// Without a reply `held` turns false before another session is let in. The locks are not lost by that: the session may still be good.
// Each renewal loop has one SuspicionCheck for its sessions; sessions without locks are left out.
import type { Clock } from '../runtime/clock.js';
import type { Store } from '../store/contract/index.js';
import type { SessionPlan } from '../session/renewer.js';
import type { SessionMemory } from '../session/session-memory.js';
import { now, trustUntil } from '../session/trust.js';
import { clearInterval, setInterval } from '../runtime/timers.js';

interface Listening {
  plan: SessionPlan;
  memory: SessionMemory;
}

/** Returns the interval of the checks. In each grace all replies but one may be lost or late. */
export function askEveryMs(graceMs: number): number {
  return graceMs / 4;
}

export class SuspicionCheck {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #onSuspected: (sessionId: string) => void;
  readonly #listening = new Map<string, Listening>();
  #timer: NodeJS.Timeout | undefined;
  #everyMs = 0;
  #asking = false;

  /** `onSuspected` must renew the session at once, which ends the suspicion. */
  constructor(store: Store, clock: Clock, onSuspected: (sessionId: string) => void) {
    this.#store = store;
    this.#clock = clock;
    this.#onSuspected = onSuspected;
  }

  add(plan: SessionPlan, memory: SessionMemory): void {
    if (plan.graceMs === 0) return;
    this.#listening.set(plan.id, { plan, memory });
    this.#beat();
  }

  delete(sessionId: string): void {
    if (this.#listening.delete(sessionId)) this.#beat();
  }

  stop(): void {
    this.#listening.clear();
    this.#beat();
  }

  #beat(): void {
    const graces = Array.from(this.#listening.values(), ({ plan }) => plan.graceMs);
    const everyMs = graces.length === 0 ? 0 : askEveryMs(Math.min(...graces));
    if (everyMs === this.#everyMs) return;
    this.#everyMs = everyMs;
    clearInterval(this.#timer);
    this.#timer = everyMs === 0 ? undefined : setInterval(() => void this.#ask(), everyMs).unref();
  }

  async #ask(): Promise<void> {
    // One check at a time: on a silently dead connection, more pending checks would keep renewals from using another connection.
    if (this.#asking) return;
    const holding = [...this.#listening.values()].filter(({ memory }) => memory.alive && memory.holdsAny);
    if (holding.length === 0) return;
    this.#asking = true;
    const sentAt = now(this.#clock);
    try {
      const replies = await this.#store.checkSessions(holding.map(({ plan: { queue, id } }) => ({ queue, id })));
      holding.forEach(({ plan, memory }, index) => {
        if (replies[index]?.unsuspected === true) memory.extendHearing(trustUntil(sentAt, plan.graceMs));
        else if (this.#listening.has(plan.id)) this.#onSuspected(plan.id);
      });
    } catch {
      // A failed check is not reported: renewals report a store that does not reply.
    }
    this.#asking = false;
  }
}
