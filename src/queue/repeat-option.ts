// The older `repeat` option of `add`: BullMQ 6 dropped it, and programs for version 5 use it. It makes a schedule whose id consists of the
// name and the options, so that adding the same job again changes nothing.
import { invalidOption } from '../runtime/check.js';
import type { JobsOptions } from '../job/options.js';
import { repeatKey, type RepeatOptions } from '../job/schedule.js';
import type { AddOptions } from './queue-options.js';
import type { Upsert } from './schedulers.js';

/** Returns undefined for a job without the option. */
export function repeatedOf(
  name: string,
  data: unknown,
  given: AddOptions | undefined,
  within: object | undefined = given?.transaction,
): Upsert | undefined {
  if (typeof given !== 'object' || given === null) return undefined;
  if (given.repeat === undefined || (given.repeat as unknown) === false) return undefined;
  // The span of the add must not be that of all later runs.
  const { repeat, jobId, transaction: _, telemetry: _span, ...opts } = given;
  if (typeof repeat !== 'object' || repeat === null || Array.isArray(repeat))
    throw invalidOption('repeat', repeat, 'an object with pattern or every');
  if (within !== undefined)
    throw invalidOption('transaction', within, 'left out with repeat: a schedule is not part of a transaction');
  return { id: repeatId(name, repeat, jobId), repeat: aligned(repeat), template: { name, data, opts } };
}

export function repeatId(name: string, repeat: RepeatOptions, jobId: JobsOptions['jobId']): string {
  return repeatKey(name, jobId === undefined ? repeat : { ...repeat, jobId });
}

/** Unlike a job scheduler, this option puts the slots of an interval on its multiples since the epoch, as in BullMQ 5 and Bull. */
function aligned(repeat: RepeatOptions): RepeatOptions {
  return typeof repeat.every === 'number' && (repeat.offset ?? undefined) === undefined ? { ...repeat, offset: 0 } : repeat;
}
