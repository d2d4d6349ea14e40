// Timers and the clock as Node made them. Tests replace those of the process by fake ones, which stand still until the test moves them:
// what only keeps Holdfast going (batches, timeouts, renewals) must not wait for that. Delays of a store in memory do: see faked-time.ts.
// They are taken once, when this is loaded. A library of fake timers that came before leaves the genuine ones at its clock.
import { performance } from 'node:perf_hooks';
import * as timers from 'node:timers';

type Timers = typeof timers;
type TimerName = 'setTimeout' | 'clearTimeout' | 'setInterval' | 'clearInterval' | 'setImmediate' | 'clearImmediate';

/** The property that fake timers of sinon, and so of Jest and vitest, put on each function that they replace. */
interface Faked {
  clock?: Record<string, unknown>;
}

export function genuine<T>(known: T, name: string): T {
  const original = (known as Faked | undefined)?.clock?.[`_${name}`];
  return original === undefined ? known : (original as T);
}

function take<N extends TimerName>(name: N): Timers[N] {
  return genuine(timers[name], name);
}

export const setTimeout = take('setTimeout');
export const clearTimeout = take('clearTimeout');
export const setInterval = take('setInterval');
export const clearInterval = take('clearInterval');
export const setImmediate = take('setImmediate');
export const clearImmediate = take('clearImmediate');
export { performance };

/** As that of `node:timers/promises`. With a signal, it ends with it, and does not reject. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const over = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', over);
      resolve();
    };
    const timer = setTimeout(over, ms);
    signal?.addEventListener('abort', over);
    if (signal?.aborted === true) over();
  });
}
