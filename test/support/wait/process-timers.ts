// Instead of src/runtime/timers.ts, in tests of the parts that it keeps going: timers and the clock of the process, which the test fakes.
//   vi.mock('../../../src/runtime/timers.js', () => import('./process-timers.js'));

export const setTimeout: typeof globalThis.setTimeout = ((...args: Parameters<typeof globalThis.setTimeout>) =>
  globalThis.setTimeout(...args)) as typeof globalThis.setTimeout;
export const setInterval: typeof globalThis.setInterval = ((...args: Parameters<typeof globalThis.setInterval>) =>
  globalThis.setInterval(...args)) as typeof globalThis.setInterval;
export const setImmediate: typeof globalThis.setImmediate = ((...args: Parameters<typeof globalThis.setImmediate>) =>
  globalThis.setImmediate(...args)) as typeof globalThis.setImmediate;
export const clearTimeout: typeof globalThis.clearTimeout = (timer) => globalThis.clearTimeout(timer);
export const clearInterval: typeof globalThis.clearInterval = (timer) => globalThis.clearInterval(timer);
export const clearImmediate: typeof globalThis.clearImmediate = (timer) => globalThis.clearImmediate(timer);
export const performance = { now: (): number => globalThis.performance.now() };
export const genuine = <T>(known: T): T => known;
export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
