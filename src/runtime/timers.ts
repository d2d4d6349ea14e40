// The genuine timers and clock of Node. Tests replace those of the process by fake ones, which stand still until the test moves them.
// Timers that keep Holdfast going (batches, timeouts, renewals) must not wait for that. Delays of the memory store do: see faked-time.ts.
// They are read once, when this file is loaded. If fake timers were installed before, the genuine ones are found on the fake clock.
import { performance } from 'node:perf_hooks';
import * as timers from 'node:timers';

type Timers = typeof timers;
type TimerName = 'setTimeout' | 'clearTimeout' | 'setInterval' | 'clearInterval' | 'setImmediate' | 'clearImmediate';

/** The property that the fake timers of sinon, and so of Jest and vitest, put on each function that they replace. */
interface Faked {
  clock?: Record<string, unknown>;
}

/** Returns the genuine function behind a fake one, or `known` itself. */
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

/** Like `sleep` of `node:timers/promises`, but resolves when the signal aborts, instead of rejecting. */
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
