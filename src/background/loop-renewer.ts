// Renews on the worker's own event loop. Used for stores that only this process can reach, for `useDedicatedLockThread: false`, and as
// the fallback while the lock thread does not run. A handler that blocks the event loop blocks this renewal too.
import { toError } from '../errors.js';
import type { Clock } from '../runtime/clock.js';
import type { Store } from '../store/contract/index.js';
import { Sweeper } from '../maintenance/sweeper.js';
import type { DetachedLocks, Renewer, RenewedSession, RenewerListener, SessionPlan } from '../session/renewer.js';
import { detachLocks } from '../renewal/detach-locks.js';
import { RenewalLoop } from '../renewal/renewal-loop.js';

interface Held {
  plan: SessionPlan;
  listener: RenewerListener;
  store: Store;
  sweeper: Sweeper | undefined;
}

export class LoopRenewer implements Renewer {
  readonly #clock: Clock;
  readonly #loops = new Map<Store, RenewalLoop>();
  readonly #held = new Map<string, Held>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  keep({ plan, memory, store, listener }: RenewedSession, firstInMs = plan.renewMs): void {
    if (this.#held.has(plan.id)) return;
    let sweeper: Sweeper | undefined;
    if (plan.sweepMs > 0) {
      const { queue, sweepMs: intervalMs } = plan;
      const onSwept = listener.swept.bind(listener);
      const onUndone = listener.undone.bind(listener);
      const onError = (error: Error) => listener.failed(error, false);
      const beforeSweep = async (): Promise<void> => this.#loops.get(store)?.catchUp();
      sweeper = new Sweeper({ store, queue, intervalMs, beforeSweep, onSwept, onUndone, onError });
    }
    this.#held.set(plan.id, { plan, listener, store, sweeper });
    if (plan.renewMs > 0) this.#renew({ plan, memory, store, listener }, firstInMs);
    // The sweeper starts last, because its first sweep must wait for the renewal added above.
    sweeper?.start();
  }

  #renew({ plan, memory, store, listener }: RenewedSession, firstInMs: number): void {
    this.#loopOf(store).add(
      {
        plan,
        memory,
        onRenewed: () => listener.renewed(),
        onNoticed: (notices) => listener.noticed(notices),
        onLost: () => {
          void this.release(plan.id);
          listener.lost();
        },
        onError: (error) => listener.failed(error, true),
      },
      firstInMs,
    );
  }

  /** Nothing to do: the renewal loop reads the same memory object. */
  grow(): void {}

  /** Nothing to do: if the event loop is blocked, this renewer is too. */
  limit(): void {}

  unlimit(): void {}

  watchAhead(): void {}

  detach(sessionId: string, locks: DetachedLocks): void {
    const held = this.#held.get(sessionId);
    if (held === undefined) return;
    const { plan, store, sweeper, listener } = held;
    detachLocks(store, plan, locks).then(
      () => sweeper?.sweep(),
      (error: unknown) => listener.failed(toError(error), true),
    );
  }

  release(sessionId: string): Promise<void> {
    this.#letGo(sessionId)?.stop();
    return Promise.resolve();
  }

  /** Another renewer has the session now. Calls under way still report, so the listener must know when to ignore them. */
  handOver(sessionId: string): void {
    this.#letGo(sessionId)?.retire();
  }

  #letGo(sessionId: string): Sweeper | undefined {
    const held = this.#held.get(sessionId);
    if (held !== undefined) {
      this.#held.delete(sessionId);
      const loop = this.#loops.get(held.store);
      loop?.delete(sessionId);
      if (loop?.size === 0) this.#loops.delete(held.store);
    }
    return held?.sweeper;
  }

  #loopOf(store: Store): RenewalLoop {
    let loop = this.#loops.get(store);
    if (loop === undefined) {
      loop = new RenewalLoop(store, this.#clock);
      this.#loops.set(store, loop);
    }
    return loop;
  }
}
