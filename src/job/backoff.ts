// How long a failed job waits for its next attempt.
import { MAX_DELAY_MS, show } from '../runtime/check.js';
import type { JobsOptions } from './options.js';

/** Milliseconds until the next attempt; 0 = at once, -1 = no further attempt. */
export type BackoffStrategy = (attemptsMade: number, type: string, error: Error, job: unknown) => number | Promise<number>;

export interface FailedAttempt {
  /** Attempts made, this one included. */
  attemptsMade: number;
  error: Error;
  /** Handed to the strategy. */
  job: unknown;
}

/** Rejects with what the strategy threw, or because there is none. */
export async function backoffDelay(
  backoff: JobsOptions['backoff'],
  attempt: FailedAttempt,
  strategy: BackoffStrategy | undefined,
  random: () => number = Math.random,
): Promise<number> {
  if (backoff === undefined) return 0;
  if (typeof backoff === 'number') return backoff;
  const { type, delay = 0, jitter = 0 } = backoff;
  if (type === 'fixed') return jittered(delay, jitter, random);
  if (type === 'exponential') return jittered(Math.min(2 ** (attempt.attemptsMade - 1) * delay, MAX_DELAY_MS), jitter, random);
  if (strategy === undefined) {
    throw new Error(`unknown backoff strategy ${show(type)}: give the worker a settings.backoffStrategy`);
  }
  const chosen: unknown = await strategy(attempt.attemptsMade, type, attempt.error, attempt.job);
  if (typeof chosen !== 'number' || !Number.isFinite(chosen) || (chosen < 0 && chosen !== -1)) {
    throw new Error(`the backoff strategy ${show(type)} must answer milliseconds or -1, but it answered ${show(chosen)}`);
  }
  return Math.min(Math.round(chosen), MAX_DELAY_MS);
}

/** Somewhere between delay * (1 - jitter) and delay, so that what failed together does not come back together. */
function jittered(delay: number, jitter: number, random: () => number): number {
  return jitter > 0 ? Math.floor(delay * (1 - jitter) + random() * delay * jitter) : delay;
}
