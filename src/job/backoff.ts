// Computes how long a failed job waits for its next attempt. Workers call it through verdict.ts.
import { MAX_DELAY_MS, show } from '../runtime/check.js';
import type { JobsOptions } from './options.js';

/** Returns the milliseconds until the next attempt. 0: at once. -1: no further attempt. */
export type BackoffStrategy = (attemptsMade: number, type: string, error: Error, job: unknown) => number | Promise<number>;

export interface FailedAttempt {
  /** Attempts made, this one included. */
  attemptsMade: number;
  error: Error;
  /** Passed to the strategy. */
  job: unknown;
}

/** Returns the delay in ms. Rejects with the strategy's error, or if the backoff type needs a strategy and there is none. */
export async function backoffDelay(
  backoff: JobsOptions['backoff'],
  attempt: FailedAttempt,
  strategy: BackoffStrategy | undefined,
  random: () => number = Math.random,
): Promise<number> {
  const builtIn = builtInDelay(backoff, attempt.attemptsMade, random);
  if (builtIn !== undefined) return builtIn;
  const { type } = backoff as { type: string };
  if (strategy === undefined) {
    throw new Error(`unknown backoff strategy ${show(type)}: give the worker a settings.backoffStrategy`);
  }
  const chosen: unknown = await strategy(attempt.attemptsMade, type, attempt.error, attempt.job);
  if (typeof chosen !== 'number' || !Number.isFinite(chosen) || (chosen < 0 && chosen !== -1)) {
    throw new Error(`the backoff strategy ${show(type)} must answer milliseconds or -1, but it answered ${show(chosen)}`);
  }
  return Math.min(Math.round(chosen), MAX_DELAY_MS);
}

/** Returns undefined if the user's strategy computes the delay. */
export function builtInDelay(backoff: JobsOptions['backoff'], attemptsMade: number, random = Math.random): number | undefined {
  if (backoff === undefined) return 0;
  if (typeof backoff === 'number') return backoff;
  const { type, delay = 0, jitter = 0 } = backoff;
  if (type === 'fixed') return jittered(delay, jitter, random);
  if (type === 'exponential') return jittered(Math.min(2 ** (attemptsMade - 1) * delay, MAX_DELAY_MS), jitter, random);
  return undefined;
}

/** Returns a random delay between delay * (1 - jitter) and delay, so that jobs that failed together do not retry together. */
function jittered(delay: number, jitter: number, random: () => number): number {
  return jitter > 0 ? Math.floor(delay * (1 - jitter) + random() * delay * jitter) : delay;
}
