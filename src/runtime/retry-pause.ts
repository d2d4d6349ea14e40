const FIRST_MS = 50;
const LAST_MS = 2000;

/**
 * Returns the pause before the next try, in ms: twice as long after each failure in a row. For tries of Holdfast itself; job/backoff.ts
 * has the pauses of jobs. `failures` counts from 1.
 */
export function retryPauseMs(failures: number, lastMs = LAST_MS, firstMs = FIRST_MS): number {
  return Math.min(lastMs, firstMs * 2 ** (failures - 1));
}
