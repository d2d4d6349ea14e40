// How many bytes a call, a reply and the event log may carry. Numbers of items alone are no bound: one job may have ten megabytes.

/**
 * No reply carries more bytes of payloads than this on any store, unless its first item alone does. A larger reply blocks the store and
 * the loop of this process for too long: PostgreSQL and its driver took 30 ms and more for a megabyte on a busy machine.
 */
export const REPLY_BYTES = 4 * 1024 * 1024;

/**
 * A queue keeps about so many bytes of events, and always the newest event. Beyond that, the oldest values (results, progress) go before
 * any event does: 10,000 events without values fit.
 */
export const EVENTS_BYTES_KEPT = 8 * 1024 * 1024;

/** A value of up to so many bytes goes only together with its event. */
export const SHORT_VALUE_BYTES = 256;

/** The largest result or progress (bytes of its JSON text) that is copied into an event. */
export const EVENT_VALUE_BYTES = 4096;

/** The first items: as many as REPLY_BYTES allows, and at least one. `size` returns bytes, or characters as an estimate. */
export function withinReply<T>(items: T[], size: (item: T) => number): T[] {
  let left = REPLY_BYTES;
  for (let n = 0; n < items.length; n += 1) {
    left -= size(items[n] as T);
    if (left < 0 && n > 0) return items.slice(0, n);
  }
  return items;
}

/** Whether a result or a progress is too large to be copied into an event. */
export function isLargeValue(json: string): boolean {
  // A character has at most three bytes, so most texts need no counting.
  return json.length > EVENT_VALUE_BYTES || (json.length * 3 > EVENT_VALUE_BYTES && Buffer.byteLength(json) > EVENT_VALUE_BYTES);
}
