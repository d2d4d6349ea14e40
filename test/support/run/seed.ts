// The seed of what a test leaves to chance: HOLDFAST_SEED, else another one in each run. A failure says how to repeat it.
import { randomInt } from 'node:crypto';
import { onTestFailed } from 'vitest';

/** To be called inside of a test. */
export function seedOfTest(): number {
  const seed = Number(process.env['HOLDFAST_SEED'] ?? randomInt(1_000_000));
  sayOnFailure(`HOLDFAST_SEED=${seed}`);
  return seed;
}

/** Prints what repeats a test when it has failed, however it failed. */
export function sayOnFailure(settings: string): void {
  onTestFailed(({ task }) => console.error(`To repeat "${task.name}": ${settings} npm test -- ${task.file.name}`));
}
