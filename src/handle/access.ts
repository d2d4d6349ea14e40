// Gives a queue or a listener access to its store. The store is opened on first use, and calls after `close` are refused. If the store
// cannot be opened, that is emitted once as an `error`, and every call rejects with it.
import { closedError, type HoldfastError, toError } from '../errors.js';
import type { Store } from '../store/contract/index.js';

/** A share of a store that other users of the process may share too. */
export interface Lease {
  ready(): Promise<Store>;
  release(): Promise<void>;
}

export class StoreAccess {
  closing: Promise<void> | undefined;
  #failed = false;

  constructor(
    readonly what: string,
    readonly lease: Lease,
    readonly onError: (error: Error) => void,
  ) {}

  async ready(): Promise<Store> {
    if (this.closing !== undefined) throw this.closed();
    return this.open();
  }

  /** Works while closing too: jobs that were accepted before must still reach the store. */
  async open(): Promise<Store> {
    try {
      const store = await this.lease.ready();
      this.#failed = false;
      return store;
    } catch (thrown) {
      const error = toError(thrown);
      if (!this.#failed) this.onError(error);
      this.#failed = true;
      throw error;
    }
  }

  /** Idempotent. `last` is the work that must end before the store is released. */
  close(last: () => Promise<void>): Promise<void> {
    this.closing ??= (async () => {
      try {
        await last();
      } finally {
        await this.lease.release();
      }
    })();
    return this.closing;
  }

  closed(): HoldfastError {
    return closedError(this.what);
  }
}
