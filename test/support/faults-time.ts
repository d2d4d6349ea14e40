// Time under the test's hand, for timers and for the clock of the parts alike.
import { vi } from 'vitest';
import { ManualClock } from '../../src/testing/manual-clock.js';

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
