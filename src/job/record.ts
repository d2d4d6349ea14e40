// A job as a store keeps it and hands it out: plain values. Payloads stay JSON text on their whole way through the store.
import type { StoredState } from './state.js';

export interface JobRecord {
  id: string;
  name: string;
  /** JSON text. */
  data: string;
  /** JSON text of the options that were given, defaults merged in. */
  opts: string;
  state: StoredState;
  priority: number;
  /** Milliseconds that the job was last delayed for; 0 when it is not. */
  delay: number;
  /** When the producer made it (producer's clock, or the `timestamp` option). Never compared with anything. */
  timestamp: number;
  attemptsMade: number;
  attemptsStarted: number;
  stalledCounter: number;
  /** JSON text of LostBy: the owner that lost it last, if one did. It stays when the job runs again or finishes. */
  lostBy?: string;
  /** Store's clock, milliseconds since the epoch. */
  processedOn?: number;
  finishedOn?: number;
  /** Name of the worker that ran it last. */
  processedBy?: string;
  /** JSON text. */
  returnvalue?: string;
  failedReason?: string;
  /** JSON text of string[]. */
  stacktrace?: string;
  /** JSON text. */
  progress?: string;
}

/** A job together with the lock that was granted in the same atomic step. */
export interface ClaimedJob extends JobRecord {
  token: string;
  fence: number;
}

/** What `add` takes. */
export interface NewJob {
  /** Absent: the store counts up from "1" per queue. */
  id?: string;
  name: string;
  data: string;
  opts: string;
  priority: number;
  delayMs: number;
  /** Ahead of those that wait with the same priority. */
  lifo: boolean;
  timestamp: number;
  /** Of jobs with the same key, one at a time runs. */
  lockKey?: string;
}

/** Its owner was lost at least once: `lostBy` may say more. */
export function hasStalled({ stalledCounter }: JobRecord): boolean {
  return stalledCounter > 0;
}
