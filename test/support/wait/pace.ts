// How much slower than alone this process runs at the moment, because others want the processor too. Waiting, and the lock durations of tests
// that must fit something into them, are stretched by it. A quiet machine, and the test files that run side by side on it, have a pace of 1.

/** Of the processor, which is enough to meet the pauses that others cause. */
const SAMPLE_MS = 40;
/** The cost of neighbours in the same test run: less is not worth a longer test. */
const USUAL_SLOWDOWN = 2.5;
/** A pause that every machine has now and then. */
const USUAL_PAUSE_MS = 25;
/** Above this, tests would take longer than a developer waits. */
const MOST = 8;

/** For the process that starts the test files, so that each of them knows what its run began with. */
export const PACE_VARIABLE = 'HOLDFAST_TEST_PACE';

export function measurePace(): number {
  const cpuBefore = process.cpuUsage();
  const began = performance.now();
  let last = began;
  let pause = 0;
  let used = 0;
  while (used < SAMPLE_MS) {
    const time = performance.now();
    pause = Math.max(pause, time - last);
    last = time;
    const { user, system } = process.cpuUsage(cpuBefore);
    used = (user + system) / 1000;
  }
  const slowdown = (last - began) / used;
  return Math.min(MOST, Math.max(1, slowdown / USUAL_SLOWDOWN, pause / USUAL_PAUSE_MS));
}

const began = Number(process.env[PACE_VARIABLE] ?? 1);

/** Of this test file: what it met when it began, and no less than what its run began with. */
export const PACE = Math.max(began, measurePace());
// For the processes that it starts.
process.env[PACE_VARIABLE] = String(PACE);

/** A duration on this machine at this time, in whole milliseconds. */
export function paced(ms: number): number {
  return Math.round(ms * PACE);
}
