// The list that `addBulk` takes: checks its items, and separates those with the older `repeat` option. Errors name the item.
import { HoldfastError } from '../errors.js';
import type { JobsOptions } from '../job/options.js';
import { invalidOption } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';
import { repeatedOf } from './repeat-option.js';
import type { Upsert } from './schedulers.js';

/** A job of `addBulk`. */
export interface GivenJob {
  name: string;
  data?: unknown;
  opts?: JobsOptions;
}

export interface SplitBulk {
  plain: GivenJob[];
  /** The places of the plain jobs in the list. */
  places: number[];
  /** The jobs with the option `repeat`, by their places. */
  repeated: Map<number, Upsert>;
}

const NAMES = new OptionNames<GivenJob>({
  of: 'addBulk',
  known: { name: true, data: true, opts: true },
  ignored: { options: 'The options of a job are called opts.' },
  unsupported: { children: 'Use FlowProducer.', queueName: 'addBulk adds to its own queue: use the Queue of that name.' },
});

export function splitBulk(jobs: unknown, within: object | undefined): SplitBulk {
  if (!Array.isArray(jobs)) throw invalidOption('jobs', jobs, 'a list of { name, data, opts }');
  const split: SplitBulk = { plain: [], places: [], repeated: new Map() };
  for (const [place, job] of (jobs as GivenJob[]).entries()) {
    const upsert = atPlace(place, (path) => upsertOf(job, path, within));
    if (upsert !== undefined) split.repeated.set(place, upsert);
    else {
      split.plain.push(job);
      split.places.push(place);
    }
  }
  return split;
}

function upsertOf(job: GivenJob, path: string, within: object | undefined): Upsert | undefined {
  if (typeof job !== 'object' || job === null) throw invalidOption(path, job, '{ name, data, opts }');
  const { options } = job as { options?: unknown };
  if (options !== undefined && job.opts === undefined) throw invalidOption(`${path}.options`, options, 'called opts');
  NAMES.check(job, path);
  const { name, data, opts } = job;
  if (typeof opts === 'object' && opts !== null && 'transaction' in opts)
    throw invalidOption('transaction', opts.transaction, 'the second argument of addBulk: all its jobs go the same way');
  return repeatedOf(name, data, opts, within);
}

/** An error of `make` gets the place of its job in the list, unless it has it. */
export function atPlace<T>(place: number, make: (path: string) => T): T {
  const path = `jobs[${place}]`;
  try {
    return make(path);
  } catch (error) {
    if (!(error instanceof HoldfastError) || error.code === 'CLOSED' || error.message.includes(path)) throw error;
    const { code, option } = error;
    throw new HoldfastError(code, `${path}: ${error.message}`, { ...(option !== undefined && { option }), cause: error });
  }
}
