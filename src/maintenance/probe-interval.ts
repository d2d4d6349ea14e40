// How often a worker probes the store for owners whose process died. All workers of a queue share the probes: there are about four per
// second, whatever the number of workers. So a death is noticed within about a second, and a fleet costs its store no more than four
// workers do.

const ALONE_MS = 1000;
const LOOKS_PER_SECOND = 4;
const RAREST_MS = 3_600_000;

/** Returns the average time to this worker's next probe, in ms. `sessions`: the number that the last probe returned. */
export function lookEveryMs(sessions: number): number {
  return Math.min(RAREST_MS, ALONE_MS * Math.max(1, sessions / LOOKS_PER_SECOND));
}

/** Returns the time to the next probe, spread by `chance` (0 to 1): workers that started together must not probe together. */
export function nextLookMs(sessions: number, chance: number): number {
  const everyMs = lookEveryMs(sessions);
  return everyMs > ALONE_MS ? everyMs * (0.5 + chance) : everyMs;
}
