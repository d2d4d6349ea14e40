import type { Call } from '../../contract/index.js';

/**
 * Runs the calls of a caller in the order of their numbers, although each may use another connection. A repeated call does not wait for
 * the call that it repeats, which may hang for as long as the server does not reply.
 */
export class CallOrder {
  readonly #last = new Map<string, { seq: number; done: Promise<unknown> }>();

  async run<T>({ caller, seq }: Call, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(caller);
    const running = before !== undefined && before.seq < seq ? before.done.then(work) : work();
    const entry = { seq, done: running.catch(() => undefined) };
    if (before === undefined || before.seq <= seq) this.#last.set(caller, entry);
    try {
      return await running;
    } finally {
      if (this.#last.get(caller) === entry) this.#last.delete(caller);
    }
  }
}
