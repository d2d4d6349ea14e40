/**
 * Repeats `attempt` until it succeeds, and returns its result. `failed` gets each failure and their number so far. It throws to end the
 * repetition, or waits until the next attempt is due. The calls of producers and sessions are repeated here, each under its number.
 */
export async function untilDone<T>(
  attempt: () => Promise<T>,
  failed: (thrown: unknown, failures: number) => Promise<void>,
): Promise<T> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await attempt();
    } catch (thrown) {
      await failed(thrown, failures);
    }
  }
}
