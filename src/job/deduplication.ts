// Deduplication: several adds with one deduplication id make one job. An entry of the queue ties the id to the job that owns it.
import { MAX_DELAY_MS, checkBoolean, checkInteger, checkText, invalidOption } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';

/** The option `deduplication` of a job, in BullMQ's shape. */
export interface DeduplicationOptions {
  /** While a job of the queue owns this id, an add of another job with this id adds nothing. */
  id: string;
  /** Milliseconds. The id is taken for this long, also after its job has finished. Default: until the job has finished. */
  ttl?: number;
  /** true: each add with this id lets `ttl` start again. Default false. */
  extend?: boolean;
  /** true: the new job replaces the known one as long as that is delayed. Default false. */
  replace?: boolean;
  /** true: the last job that was added while the known one ran is added when that has finished. Default false. */
  keepLastIfActive?: boolean;
}

/** The deduplication of a new job, as the store takes it. The queue makes it from the option `deduplication`. */
export interface Deduplication {
  /** Jobs with the same id are the same piece of work. */
  id: string;
  /** The entry counts for this long, also after its owner has ended. Absent: the entry counts until its owner ends. */
  ttlMs?: number;
  /** True: an add that finds an entry lets the time `ttlMs` of that entry start again. */
  extend?: boolean;
  /** True: the new job replaces an owner that is still delayed. */
  replaceDelayed?: boolean;
  /** True: the last job that was added while the owner ran is added when the owner ends. `ttlMs` then has no effect. */
  keepLastIfActive?: boolean;
}

const MAX_ID = 500;

const NAMES = new OptionNames<DeduplicationOptions>({
  of: 'job',
  known: { id: true, ttl: true, extend: true, replace: true, keepLastIfActive: true },
});

/** Throws INVALID_OPTION. */
export function checkDeduplication(path: string, value: unknown): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalidOption(path, value, 'an object with id, ttl, extend, replace, keepLastIfActive');
  const options = value as Record<string, unknown>;
  NAMES.check(options, path);
  checkDeduplicationId(options['id'], `${path}.id`);
  const { ttl } = options;
  for (const name of ['extend', 'replace', 'keepLastIfActive'])
    if (options[name] !== undefined) checkBoolean(`${path}.${name}`, options[name]);
  if (ttl === undefined) return;
  checkInteger(`${path}.ttl`, ttl, { min: 1, max: MAX_DELAY_MS });
}

export function checkDeduplicationId(id: unknown, path = 'id'): string {
  return checkText(path, id, MAX_ID);
}

/** Converts the option of a job to the store's input. */
export function deduplicationOf({ id, ttl, extend, replace, keepLastIfActive }: DeduplicationOptions): Deduplication {
  const made: Deduplication = { id };
  if (ttl !== undefined) made.ttlMs = ttl;
  if (extend === true) made.extend = true;
  if (replace === true) made.replaceDelayed = true;
  if (keepLastIfActive === true) made.keepLastIfActive = true;
  return made;
}

/** Returns the time that an entry of this job counts for, in ms; undefined if the entry ends with its owner. */
export function entryMs({ ttlMs, keepLastIfActive }: Deduplication): number | undefined {
  return keepLastIfActive === true ? undefined : ttlMs;
}
