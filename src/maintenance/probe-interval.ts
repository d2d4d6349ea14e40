// How often a worker looks for owners whose process died. All workers of a queue share the looks: however many they are, there are a few
// in each second, so that a death is noticed within about one, and a fleet costs its store no more than four workers do.

const ALONE_MS = 1000;
const LOOKS_PER_SECOND = 4;
const RAREST_MS = 3_600_000;

/** Until this worker looks again, on average. `sessions`: as the last look found them. */
export function lookEveryMs(sessions: number): number {
  return Math.min(RAREST_MS, ALONE_MS * Math.max(1, sessions / LOOKS_PER_SECOND));
}

/** The same, spread by `chance` (0 to 1): a fleet that was started in one moment must not look in one moment. */
export function nextLookMs(sessions: number, chance: number): number {
  const everyMs = lookEveryMs(sessions);
  return everyMs > ALONE_MS ? everyMs * (0.5 + chance) : everyMs;
}
