import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../src/testing/index.js';

describe('ManualClock', () => {
  it('stands still until it is advanced', () => {
    const clock = new ManualClock({ monotonicMs: 5, wallMs: 1_000 });
    expect([clock.monotonic(), clock.wall()]).toEqual([5, 1_000]);
    clock.advance(250);
    expect([clock.monotonic(), clock.wall()]).toEqual([255, 1_250]);
    expect([clock.monotonic(), clock.wall()]).toEqual([255, 1_250]);
  });

  it('steps the wall clock alone, forward and back', () => {
    const clock = new ManualClock({ monotonicMs: 5, wallMs: 1_000 });
    clock.stepWall(60_000);
    clock.stepWall(-120_000);
    expect([clock.monotonic(), clock.wall()]).toEqual([5, -59_000]);
  });

  it('never runs backwards', () => {
    const clock = new ManualClock();
    for (const ms of [-1, Number.NaN, Number.POSITIVE_INFINITY]) expect(() => clock.advance(ms)).toThrow(RangeError);
    expect(() => clock.stepWall(Number.NaN)).toThrow(RangeError);
  });
});
