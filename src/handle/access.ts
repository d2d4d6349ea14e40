// How a queue or a listener reaches its store: opened on first use, refused once closed, and a store that cannot be opened is told
// once as an `error` while every call rejects with it.
import { HoldfastError, toError } from '../errors.js';
import type { Store } from '../store/contract/index.js';

/** A share of a store that others may use too. */
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

  /** Also while closing: what was accepted before still has to reach the store. */
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

  /** Idempotent. `last` is what must end before the store is let go of. */
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
    return new HoldfastError('CLOSED', `${this.what} was closed. Make a new one to go on.`);
  }
}
