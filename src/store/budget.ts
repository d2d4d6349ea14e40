// How many bytes a call, a reply and the event log may carry. A number of items alone is no bound: one job may have ten megabytes.

/**
 * The most bytes of payloads in a reply, on any store; a first item that alone is larger still goes through. A larger reply blocks the
 * store and the event loop of this process for too long: PostgreSQL and its driver took 30 ms and more for a megabyte on a busy machine.
 */
export const REPLY_BYTES = 4 * 1024 * 1024;

/**
 * How many bytes of events a queue keeps, approximately. The newest event always stays. Above the limit, the oldest values (results,
 * progress) are dropped before any event: 10,000 events without values fit.
 */
export const EVENTS_BYTES_KEPT = 8 * 1024 * 1024;

/** A value of at most this many bytes is dropped only together with its event. */
export const SHORT_VALUE_BYTES = 256;

/** The largest result or progress (bytes of its JSON text) that is copied into an event. */
export const EVENT_VALUE_BYTES = 4096;

/** Returns the first items, as many as REPLY_BYTES allows, and at least one. `size` returns bytes, or characters as an estimate. */
export function withinReply<T>(items: T[], size: (item: T) => number): T[] {
  let left = REPLY_BYTES;
  for (let n = 0; n < items.length; n += 1) {
    left -= size(items[n] as T);
    if (left < 0 && n > 0) return items.slice(0, n);
  }
  return items;
}

/** Returns true if a result or progress is too large to be copied into an event. */
export function isLargeValue(json: string): boolean {
  // A character has at most three bytes, so most texts need no counting.
  return json.length > EVENT_VALUE_BYTES || (json.length * 3 > EVENT_VALUE_BYTES && Buffer.byteLength(json) > EVENT_VALUE_BYTES);
}
