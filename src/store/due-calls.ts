// Calls that are owed to watchers: made together at the end of this turn of the loop, each once, however often it was asked for.
import { clearImmediate, setImmediate } from '../runtime/timers.js';

export class DueCalls {
  readonly #due = new Set<() => void>();
  #firing: NodeJS.Immediate | undefined;

  add(call: () => void): void {
    this.#due.add(call);
    this.#firing ??= setImmediate(this.#fire);
  }

  /** Whoever stops watching is not called any more. */
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
