// The time limits of runs, in the lock thread. A free event loop ends its own runs in time. If a handler blocks the loop for longer than
// its limit, its grace and a while, the thread ends the run: the lock is lost first, then the store gets the outcome that the worker has
// prepared. The result of the handler, whenever it comes, is refused by the store.
import type { Outcome } from '../job/outcome.js';
import { retryPauseMs } from '../runtime/retry-pause.js';
import { clearTimeout, setTimeout } from '../runtime/timers.js';
import type { RunLimit } from '../session/renewer.js';
import type { SessionMemory } from '../session/session-memory.js';
import type { Notice, Store } from '../store/contract/index.js';

/** How often the outcome is sent to a store that does not reply. After that the job comes back when its lock expires. */
const TRIES = 5;

interface Limited {
  queue: string;
  memory: SessionMemory;
  store(): Store | undefined;
  onOver(notice: Notice): void;
  onError(error: unknown): void;
}

export class RunLimits {
  readonly #timers = new Map<string, NodeJS.Timeout>();

  add(limit: RunLimit, limited: Limited): void {
    const timer = setTimeout(() => void this.#end(limit, limited), limit.inMs);
    this.#timers.set(limit.outcome.token, timer.unref());
  }

  delete(token: string): void {
    clearTimeout(this.#timers.get(token));
    this.#timers.delete(token);
  }

  stop(): void {
    for (const token of this.#timers.keys()) this.delete(token);
  }

  async #end({ outcome, fence, reason }: RunLimit, limited: Limited): Promise<void> {
    this.#timers.delete(outcome.token);
    // Before the store can let another owner in.
    limited.memory.lose(fence);
    const { jobId, token } = outcome;
    limited.onOver({ number: 0, kind: 'revoked', jobId, token, fence, reason });
    for (let failures = 1; failures <= TRIES; failures += 1) {
      try {
        await settle(limited, outcome);
        return;
      } catch (error) {
        limited.onError(error);
        await new Promise<void>((resolve) => setTimeout(resolve, retryPauseMs(failures)).unref());
      }
    }
  }
}

async function settle({ store, queue }: Limited, outcome: Outcome): Promise<void> {
  await store()?.settle(queue, [outcome]);
}
