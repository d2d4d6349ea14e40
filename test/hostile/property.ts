// Properties with the same cases in every run, unless others are asked for:
//   HOLDFAST_HOSTILE_RUNS=100 npx vitest run test/hostile           a hundred times as many
//   HOLDFAST_HOSTILE_SEED=7 …                                      others
import fc from 'fast-check';
import { sayOnFailure } from '../support/run/seed.js';
import { revive } from './odd-values.js';

const SEED = 20_301;
const TIMES = Number(process.env['HOLDFAST_HOSTILE_RUNS'] ?? 1);
/** For a test that holds something: most take a few seconds, and ten times as long beside a busy machine's other work. */
export const PATIENCE = { timeout: 60_000 * TIMES };

export async function holds<T>(cases: fc.Arbitrary<T>, numRuns: number, body: (value: T) => Promise<void>): Promise<void> {
  const seed = Number(process.env['HOLDFAST_HOSTILE_SEED'] ?? SEED);
  sayOnFailure(`HOLDFAST_HOSTILE_SEED=${seed}`);
  await fc.assert(
    fc.asyncProperty(cases, (value) => body(revive(value) as T)),
    { seed, numRuns: numRuns * TIMES },
  );
}
