// How long something took of the processor: on a busy machine, other programs stretch the time on the wall, and not this one.

/** Returns the result, and the milliseconds of processor time that this process used meanwhile. */
export async function timed<T>(act: () => Promise<T>): Promise<{ result: T; cpuMs: number }> {
  const before = process.cpuUsage();
  const result = await act();
  const { user, system } = process.cpuUsage(before);
  return { result, cpuMs: (user + system) / 1000 };
}
