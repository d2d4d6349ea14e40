// Where crash hints look at connections, a living process can be taken for dead: the server has lost its connection, and lets others in
// when the grace is over. So while it holds locks, it asks again and again whether it is under suspicion. An answer is good for the grace
// from the moment before the question was sent: a suspicion that comes after it leaves at least that. Without an answer `held` reads
// false before anybody else is let in; nothing is lost by that, for the sessions may still be good.
// The renewal loop has one, for the sessions that it renews; sessions that hold nothing are not asked about.
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

/** How often a session that holds locks is asked about: so that in each grace all answers but one may be lost, or late. */
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

  /** `onSuspected`: it is to be renewed at once, which ends the suspicion. */
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
    // One at a time: on a connection that is dead without a word, they would keep renewals from going another way.
    if (this.#asking) return;
    const holding = [...this.#listening.values()].filter(({ memory }) => memory.alive && memory.holdsAny);
    if (holding.length === 0) return;
    this.#asking = true;
    const sentAt = now(this.#clock);
    try {
      const replies = await this.#store.unsuspected(holding.map(({ plan: { queue, id } }) => ({ queue, id })));
      holding.forEach(({ plan, memory }, index) => {
        if (replies[index] === true) memory.extendHearing(trustUntil(sentAt, plan.graceMs));
        else if (this.#listening.has(plan.id)) this.#onSuspected(plan.id);
      });
    } catch {
      // That the store does not answer is told by renewals.
    }
    this.#asking = false;
  }
}
