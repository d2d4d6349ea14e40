// The names under which a store keeps what a run has recorded. The first letter says what it is, so that a step and a signal of the same
// name do not meet.
import { HoldfastError } from '../errors.js';
import { invalidOption, show } from '../runtime/check.js';

export type StepKind = 'step' | 'sleep' | 'wait' | 'signal';

const LETTERS: Record<StepKind, string> = { step: 's', sleep: 'z', wait: 'w', signal: 'g' };
const KINDS = new Map(Object.entries(LETTERS).map(([kind, letter]) => [letter, kind as StepKind]));

/** NUL and halves of surrogate pairs: not every store can keep them. */
const UNFIT = /[\0\p{Cs}]/u;
/** The longest name, in characters. */
const MAX_NAME = 256;

/** Returns the name under which the store keeps the step. Throws INVALID_STEP if it cannot be one. */
export function storedName(kind: StepKind, name: unknown): string {
  if (typeof name !== 'string' || name === '' || name.length > MAX_NAME || UNFIT.test(name)) {
    const given = typeof name === 'string' && name.length > MAX_NAME ? `${name.length} characters long` : show(name);
    const wanted = `a text of 1 to ${MAX_NAME} characters, without NUL and halves of surrogate pairs`;
    throw new HoldfastError('INVALID_STEP', `The name of a ${kind} must be ${wanted}, but it is ${given}.`);
  }
  return `${LETTERS[kind]}:${name}`;
}

/** Returns undefined if the name is not one of ours. */
export function parseStoredName(stored: string): { kind: StepKind; name: string } | undefined {
  const kind = stored[1] === ':' ? KINDS.get(stored[0] ?? '') : undefined;
  return kind === undefined ? undefined : { kind, name: stored.slice(2) };
}

/** Checks the function of a step. */
export function checkWork(work: unknown): void {
  if (typeof work !== 'function') throw invalidOption('step', work, 'a function that does the work of the step');
}
