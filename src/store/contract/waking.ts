// Wake-ups: that something may have changed.

/** 'events': any change, and the default. */
export type WatchedChange = 'jobs' | 'locks' | 'events';

export interface Waking {
  /**
   * Calls back soon after something of the queue may have changed: jobs became claimable (a key
   * or a place under the cap came free), a named lock came free, events were written, pause or limits changed.
   * May call back for nothing, and a wake-up can be lost: callers look for themselves from time to time.
   * With 'jobs', only that something may be claimable, now or sooner than was known, has to be told, and with 'locks' only that a
   * named lock may be had: a store that can tell it apart cheaply does not wake those who are idle for every event of the others.
   */
  watch(queue: string, listener: () => void, what?: WatchedChange): () => void;
  /**
   * Calls back with every setting of the server under which it would not keep what it acknowledges (eviction, persistence), soon
   * and again after each new connection, and with an outage that no call has told of yet. Answers how to stop.
   */
  onWarning(listener: (warning: Error) => void): () => void;
}
