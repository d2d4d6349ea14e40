// The terms under which a worker claims jobs: how many, its name, the rate limit and, for timed locks, their duration.
import type { ClaimTerms } from '../store/client/session-calls.js';
import type { CheckedWorkerOptions } from './options.js';

export function claimTerms({ name, limiter, skipLockRenewal, lockDuration }: CheckedWorkerOptions, count: number): ClaimTerms {
  const terms: ClaimTerms = { count, by: name };
  if (limiter !== undefined) terms.limit = { max: limiter.max, durationMs: limiter.duration };
  if (skipLockRenewal) terms.timedMs = lockDuration;
  return terms;
}
