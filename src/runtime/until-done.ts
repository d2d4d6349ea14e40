type Failed = (thrown: unknown, failures: number) => Promise<void>;

/**
 * Repeats `attempt` until it succeeds, and returns its result. `failed` gets each failure and their number so far. It throws to end the
 * repetition, or waits until the next attempt is due. The calls of producers and sessions are repeated here, each under its number.
 */
export function untilDone<T>(attempt: () => Promise<T>, failed: Failed): Promise<T> {
  // Most attempts succeed: the loop, which costs an `async` function, begins with the first failure.
  return attempt().catch((thrown: unknown) => repeat(attempt, failed, thrown));
}

async function repeat<T>(attempt: () => Promise<T>, failed: Failed, first: unknown): Promise<T> {
  let thrown = first;
  for (let failures = 1; ; failures += 1) {
    await failed(thrown, failures);
    try {
      return await attempt();
    } catch (again) {
      thrown = again;
    }
  }
}
