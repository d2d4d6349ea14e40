// Wake-ups: a store calls back when a queue may have changed.

/** 'events': any change, and the default. */
export type WatchedChange = 'jobs' | 'locks' | 'events';

export interface Waking {
  /**
   * Calls back soon after the queue may have changed: jobs became claimable (also because a key or a place under the cap or in a group is free), a
   * named lock is free, events were written, or pause or limits changed. A wake-up may come without a change, and may be lost: callers
   * also poll from time to time. Returns a function that stops it.
   * With 'jobs', the store must call back only when a job may be claimable, now or sooner than known. With 'locks', only when a named
   * lock may be free. A store that can distinguish them cheaply does not wake idle workers for other changes.
   */
  watch(queue: string, listener: () => void, what?: WatchedChange): () => void;
  /**
   * Calls back with each setting of the server under which acknowledged writes can be lost (eviction, persistence), soon and again
   * after each new connection. Also calls back with an outage that no call has reported yet. Returns a function that stops it.
   */
  onWarning(listener: (warning: Error) => void): () => void;
}
