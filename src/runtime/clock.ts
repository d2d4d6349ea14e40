// The clocks of this process. Trust in a lock is measured on the monotonic clock, because no time step moves it.
// The wall clock is only for times that are shown to people.
import { genuine, performance } from './timers.js';

export interface Clock {
  /** Milliseconds that only grow. All processes of this host share the arbitrary start, until the host reboots. */
  monotonic(): number;
  /** Milliseconds since the epoch, on this host's clock. */
  wall(): number;
}

/** Two reads this close together, in ms, are one moment. */
const TOGETHER_MS = 0.05;
const MOST_READS = 100;

/**
 * Returns when this thread began, by the clock of the host. A thread that is stopped between the two reads of a pair (by a busy machine, or
 * SIGSTOP) would be late by that time for as long as it lives, and trust its locks for longer than others do. So the closest pair counts.
 */
export function beginningOf(host: () => number, sinceBeginning: () => number): number {
  let [closest, began] = [Number.POSITIVE_INFINITY, 0];
  for (let reads = 0; reads < MOST_READS && closest > TOGETHER_MS; reads += 1) {
    const before = sinceBeginning();
    const time = host();
    const apart = sinceBeginning() - before;
    if (apart < closest) [closest, began] = [apart, time - before - apart / 2];
  }
  return began;
}

const hrtime = genuine(process.hrtime, 'hrtime');
/** `performance.now()` counts from it on the same clock as `hrtime`, at half the price of a bigint. Calls read it often. */
const THREAD_BEGAN = beginningOf(
  () => Number(hrtime.bigint() / 1000n) / 1000,
  () => performance.now(),
);

export const systemClock: Clock = {
  monotonic: () => THREAD_BEGAN + performance.now(),
  wall: () => Date.now(),
};
