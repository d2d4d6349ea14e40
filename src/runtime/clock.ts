// The clocks of this process. Trust in a lock is measured on the monotonic one, which no time step moves;
// the wall clock is only ever shown to people.
import { genuine, performance } from './timers.js';

export interface Clock {
  /** Milliseconds that only grow, from an arbitrary start that all processes of this host share until it reboots. */
  monotonic(): number;
  /** Milliseconds since the epoch, as this host believes. */
  wall(): number;
}

/** `performance.now()` is the same clock from the start of this thread, and half the price of a bigint, of which every call takes several. */
const THREAD_BEGAN = Number(genuine(process.hrtime, 'hrtime').bigint() / 1000n) / 1000 - performance.now();

export const systemClock: Clock = {
  monotonic: () => THREAD_BEGAN + performance.now(),
  wall: () => Date.now(),
};
