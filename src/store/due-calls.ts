// Calls to watchers that are due. They are made together at the end of this turn of the event loop, each once, however often it was added.
import { clearImmediate, setImmediate } from '../runtime/timers.js';

export class DueCalls {
  readonly #due = new Set<() => void>();
  #firing: NodeJS.Immediate | undefined;

  add(call: () => void): void {
    this.#due.add(call);
    this.#firing ??= setImmediate(this.#fire);
  }

  /** Removes a call, for a watcher that stops watching. */
  drop(call: () => void): void {
    this.#due.delete(call);
  }

  stop(): void {
    clearImmediate(this.#firing);
  }

  readonly #fire = (): void => {
    this.#firing = undefined;
    const due = [...this.#due];
    this.#due.clear();
    for (const call of due) call();
  };
}
