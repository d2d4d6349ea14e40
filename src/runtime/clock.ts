// The clocks of this process. Trust in a lock is measured on the monotonic clock, because no time step moves it.
// The wall clock is only for times that are shown to people.
import { genuine, performance } from './timers.js';

export interface Clock {
  /** Milliseconds that only grow. All processes of this host share the arbitrary start, until the host reboots. */
  monotonic(): number;
  /** Milliseconds since the epoch, on this host's clock. */
  wall(): number;
}

/** Start of this thread. `performance.now()` counts from it on the same clock, at half the price of a bigint. Calls read it often. */
const THREAD_BEGAN = Number(genuine(process.hrtime, 'hrtime').bigint() / 1000n) / 1000 - performance.now();

export const systemClock: Clock = {
  monotonic: () => THREAD_BEGAN + performance.now(),
  wall: () => Date.now(),
};
