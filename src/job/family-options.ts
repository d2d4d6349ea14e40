// The options of a job that concern other jobs, in BullMQ's shape: its parent, and what its failure means for that.
import { checkBoolean, checkText, invalidOption } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';
import { FAILURE_INSTRUCTIONS, type FailureOption, type Instruction, type ParentLink } from './family.js';
import { checkQueueName, parseQueueName } from './names.js';

/** The parent of a new job. */
export interface ParentOptions {
  id: string;
  /** `prefix:name` of the parent's queue (`job.queueQualifiedName`), or its name alone if it has the same prefix. */
  queue: string;
}

/** At most one of these is true. They apply when the job has failed for good. Without any, the parent goes on waiting for the job. */
export interface FailureOptions {
  /** The parent fails too. */
  failParentOnFailure?: boolean;
  /** The parent starts at once, while other children may still run. */
  continueParentOnFailure?: boolean;
  /** The parent starts when all its children have ended; `getIgnoredChildrenFailures` has the reason. */
  ignoreDependencyOnFailure?: boolean;
  /** The parent forgets the job, and starts when all its other children have ended. */
  removeDependencyOnFailure?: boolean;
}

/** The id of a dead letter has the name of a queue and an id in it. */
const MAX_ID = 700;
const PARENT_NAMES = new OptionNames<ParentOptions>({ of: 'job', known: { id: true, queue: true } });
export const FAILURE_NAMES = Object.keys(FAILURE_INSTRUCTIONS) as FailureOption[];

export function checkParent(path: string, value: unknown): void {
  if (typeof value !== 'object' || value === null) throw invalidOption(path, value, '{ id, queue } of the parent');
  PARENT_NAMES.check(value as ParentOptions & Record<string, unknown>, path);
  const { id, queue } = value as ParentOptions;
  checkText(`${path}.id`, id, MAX_ID);
  if (typeof queue !== 'string') throw invalidOption(`${path}.queue`, queue, 'the name of the queue, or prefix:name');
}

export function checkFailureOption(path: string, value: unknown): void {
  checkBoolean(path, value);
}

/** A queue of the same prefix. */
export function checkDeadLetter(path: string, value: unknown): void {
  try {
    checkQueueName(value);
  } catch (cause) {
    throw invalidOption(path, value, `the name of a queue${cause instanceof Error ? ` (${cause.message})` : ''}`);
  }
}

/** Throws INVALID_OPTION if the options contradict one another. */
export function checkFamilyOptions(options: FailureOptions & { parent?: unknown; deduplication?: unknown }): void {
  const set = FAILURE_NAMES.filter((name) => options[name] === true);
  if (set.length > 1)
    throw invalidOption(set[1] ?? '', true, `left out with ${set[0]}: at most one of ${FAILURE_NAMES.join(', ')}`);
  if (options.parent !== undefined && options.deduplication !== undefined)
    throw invalidOption(
      'deduplication',
      options.deduplication,
      'left out with parent: the parent would wait for a job that is not added',
    );
}

/** Returns what the failure of a job with these options means for its parents. */
export function onFailureOf(options: FailureOptions): Instruction | undefined {
  const name = FAILURE_NAMES.find((one) => options[one] === true);
  return name === undefined ? undefined : { ...FAILURE_INSTRUCTIONS[name] };
}

/** `prefix`: of the job's own queue. */
export function parentLink({ id, queue }: ParentOptions, options: FailureOptions, prefix: string): ParentLink {
  const onFailure = onFailureOf(options);
  return { queue: parseQueueName(queue, prefix).stored, id, ...(onFailure !== undefined && { onFailure }) };
}
