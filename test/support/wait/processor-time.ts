// How long something took of the processor: on a busy machine, other programs stretch the time on the wall, and not this one.
import { readFileSync } from 'node:fs';

/** Returns the result, and the milliseconds of processor time that this process used meanwhile. */
export async function timed<T>(act: () => Promise<T>): Promise<{ result: T; cpuMs: number }> {
  const before = process.cpuUsage();
  const result = await act();
  const { user, system } = process.cpuUsage(before);
  return { result, cpuMs: (user + system) / 1000 };
}

/** The processor time of the main thread so far, in ms, on Linux. Its other threads (garbage, files) do not hold up the event loop. */
function mainThreadMs(): number {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
}

/** Returns the result, and the most processor time that one turn of the event loop took meanwhile, in ms. */
export async function longestTurn<T>(act: () => Promise<T>): Promise<{ result: T; turnMs: number }> {
  let [turnMs, before, ended] = [0, mainThreadMs(), false];
  const watch = (): void => {
    const now = mainThreadMs();
    [turnMs, before] = [Math.max(turnMs, now - before), now];
    if (!ended) setImmediate(watch);
  };
  setImmediate(watch);
  try {
    const result = await act();
    await new Promise((resolve) => setImmediate(resolve));
    return { result, turnMs };
  } finally {
    ended = true;
  }
}
