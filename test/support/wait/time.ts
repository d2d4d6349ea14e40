// Time under the test's hand, for timers and for the clock of the parts alike.
import { vi } from 'vitest';
import { ManualClock } from '../../../src/testing/manual-clock.js';

const STEP_MS = 10;

export interface Time {
  clock: ManualClock;
  /** Lets timers fire and what they began go on, in small steps. */
  pass(ms: number): Promise<void>;
}

/** Undo with vi.useRealTimers(). */
export function takeTime(): Time {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
  const clock = new ManualClock();
  return {
    clock,
    pass: async (ms) => {
      for (let left = ms; left > 0; left -= STEP_MS) {
        clock.advance(STEP_MS);
        await vi.advanceTimersByTimeAsync(STEP_MS);
      }
    },
  };
}

export interface ProcessTime {
  /** Lets time pass for timers and for the clock of this process, in small steps; what they begin goes on in between. */
  pass(ms: number): Promise<void>;
  /** Lets time pass until it has come to its end. */
  until<T>(work: Promise<T>): Promise<T>;
}

/** The time of everything that asks the clock of the process. Undo with vi.useRealTimers(). */
export function takeProcessTime(): ProcessTime {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
  // Immediates are real: what goes with the next turns of the loop takes no time.
  const settle = async (): Promise<void> => {
    for (let turns = 0; turns < 6; turns += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  return {
    pass: async (ms) => {
      for (let left = ms; left > 0; left -= STEP_MS) {
        await vi.advanceTimersByTimeAsync(STEP_MS);
        await settle();
      }
    },
    until: async (work) => {
      let over = false;
      const watched = work.finally(() => {
        over = true;
      });
      watched.catch(() => undefined);
      for (await settle(); !over; await settle()) await vi.advanceTimersByTimeAsync(STEP_MS);
      return watched;
    },
  };
}
