// How long something took, for an upper bound on it. Pauses of the machine do not count: the time in which this process was due and did not
// run. A pause that falls into a wait is left out as well, so a stopwatch may count too little, and never too much.
// What blocks this process without computing (a synchronous child, a busy database file) looks the same, so judge that by another clock.

const BEAT_MS = 5;
/** A timer that fires this late, and less, is as exact as timers are. */
const USUAL_MS = 2;

// Tests fake the timers of the process.
const { setInterval } = globalThis;
const now = performance.now.bind(performance);

let last: { at: number; cpu: NodeJS.CpuUsage } | undefined;
let pausedMs = 0;

/** Returns a function that returns the milliseconds since, without pauses of the machine. */
export function stopwatch(): () => number {
  if (last === undefined) setInterval(beat, BEAT_MS).unref();
  beat();
  const began = now();
  const before = pausedMs;
  return () => {
    beat();
    return now() - began - (pausedMs - before);
  };
}

function beat(): void {
  const at = now();
  const cpu = process.cpuUsage();
  if (last !== undefined) {
    // What this process computed in the meantime is no pause.
    const computed = (cpu.user + cpu.system - last.cpu.user - last.cpu.system) / 1000;
    const pause = at - last.at - BEAT_MS - computed;
    if (pause > USUAL_MS) pausedMs += pause;
  }
  last = { at, cpu };
}
