// Converts the arguments of `add` to the store's input: checked, with the defaults merged in, and the payload as JSON text.
import { deduplicationOf } from '../job/deduplication.js';
import { parentLink } from '../job/family-options.js';
import { checkJobName, type QueueNames, queueNames } from '../job/names.js';
import { newJob } from '../job/new-job.js';
import {
  checkDefaultJobOptions,
  checkJobOptions,
  type DefaultJobOptions,
  type JobsOptions,
  mergeOptions,
} from '../job/options.js';
import { encode, encodeData } from '../job/payload.js';
import type { JobRecord, NewJob } from '../job/record.js';
import { invalidOption } from '../runtime/check.js';
import { extraFieldsOf } from '../store/marks.js';

export class Drafts {
  readonly defaults: DefaultJobOptions;
  // Most jobs have no options of their own, so the text of the defaults is made once.
  readonly #defaultsText: string;
  readonly #queue: QueueNames;
  readonly #foreign: ReadonlySet<string> | undefined;

  /** `foreign`: job options that the caller implements itself. */
  constructor(queue: QueueNames, defaults: DefaultJobOptions = {}, foreign?: ReadonlySet<string>) {
    this.#queue = queue;
    this.#foreign = foreign;
    if (typeof defaults === 'object' && defaults !== null && 'transaction' in defaults)
      throw invalidOption('defaultJobOptions.transaction', defaults.transaction, 'given with each add: a transaction ends');
    // A copy, because changing the object later must not undo the check.
    this.defaults = { ...checkDefaultJobOptions(defaults, foreign) };
    this.#defaultsText = encode('defaultJobOptions', this.defaults);
  }

  /** `path`: of the options, for messages. */
  make(name: unknown, data: unknown, given: JobsOptions | undefined, path = ''): NewJob {
    const jobName = checkJobName(name);
    const opts: JobsOptions =
      given === undefined ? this.defaults : mergeOptions(this.defaults, checkJobOptions(given, path, this.#foreign));
    const payload = encodeData(jobName, data, opts.sizeLimit);
    const text = given === undefined ? this.#defaultsText : encode(`Options of job "${jobName}"`, opts);
    const job = newJob(jobName, payload, opts, text, Date.now());
    if (opts.jobId !== undefined) job.id = opts.jobId;
    if (opts.deduplication !== undefined) job.deduplication = deduplicationOf(opts.deduplication);
    if (opts.deadLetter !== undefined) job.deadLetter = this.#lettersOf(opts.deadLetter);
    if (opts.parent !== undefined) job.parents = [parentLink(opts.parent, opts, this.#queue.prefix)];
    return job;
  }

  #lettersOf(name: string): string {
    const { stored } = queueNames(name, this.#queue.prefix);
    if (stored !== this.#queue.stored) return stored;
    throw invalidOption('deadLetter', name, 'another queue than that of the job: a letter that fails would come back for ever');
  }
}

/** Returns the record that the store holds right after it has taken the job. */
export function recordOf(job: NewJob, id: string): JobRecord {
  const record: JobRecord = {
    id,
    name: job.name,
    data: job.data,
    opts: job.opts,
    state: job.waitsForChildren === true ? 'waiting-children' : job.delayMs > 0 ? 'delayed' : 'waiting',
    priority: job.priority,
    delay: job.delayMs,
    timestamp: job.timestamp,
    attemptsMade: 0,
    attemptsStarted: 0,
    stalledCounter: 0,
  };
  return Object.assign(record, extraFieldsOf(job));
}
