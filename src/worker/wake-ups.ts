// Wake-ups of a queue for a caller that alternates between claiming and waiting. A wake-up that comes between two waits ends the next wait.
import type { Store } from '../store/contract/index.js';
import { clearTimeout, setTimeout } from '../runtime/timers.js';

export class WakeUps {
  readonly #unwatch: () => void;
  #pending = false;
  #wake: (() => void) | undefined;

  constructor(store: Store, queue: string) {
    this.#unwatch = store.watch(queue, () => this.wake(), 'jobs');
  }

  wake(): void {
    this.#pending = true;
    this.#wake?.();
  }

  /** Resolves at the next wake-up, or after `ms`. */
  async next(ms: number): Promise<void> {
    if (!this.#pending) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        timer = setTimeout(resolve, Math.max(1, ms));
      });
      clearTimeout(timer);
      this.#wake = undefined;
    }
    this.#pending = false;
  }

  end(): void {
    this.#unwatch();
  }
}
