// The seed of what a test leaves to chance: HOLDFAST_SEED, else one that belongs to the test file in the gate, and another one in each other run.
// A failure says how to repeat it.
import { randomInt } from 'node:crypto';
import { expect, onTestFailed } from 'vitest';
import { FULL, numberOf } from './matrix.js';

/** To be called inside of a test. */
export function seedOfTest(): number {
  const seed = Number(process.env['HOLDFAST_SEED'] ?? (FULL ? randomInt(1_000_000) : numberOf(expect.getState().testPath ?? '')));
  sayOnFailure(`HOLDFAST_SEED=${seed}`);
  return seed;
}

/** Prints what repeats a test when it has failed, however it failed. */
export function sayOnFailure(settings: string): void {
  onTestFailed(({ task }) => console.error(`To repeat "${task.name}": ${settings} npm test -- ${task.file.name}`));
}
