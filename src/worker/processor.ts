// Checks the processor that the user gives to a Worker: one function for all jobs, a map of functions by job name, or nothing.
import { HoldfastError } from '../errors.js';
import type { Job } from '../handle/job.js';
import { invalidOption, show } from '../runtime/check.js';
import { takesSignal } from './runner.js';

export type Handler = (job: Job, token: string, signal?: AbortSignal) => unknown;

const WANTED =
  'a function (job, token, signal) => result, the path or URL of a file that exports one, a map of functions by job name, or null to take jobs by hand';

/** Returns undefined if jobs are taken by hand. */
export function processorOf(given: unknown, queue: string): Handler | undefined {
  if (given === undefined || given === null) return undefined;
  if (typeof given === 'function') return given as Handler;
  if (typeof given !== 'object' || Array.isArray(given)) throw invalidOption('processor', given, WANTED);
  if (isOptions(given)) throw missing();
  return byName(new Map(Object.entries(given)), queue);
}

/** The second argument may have been left out. */
function isOptions(given: object): boolean {
  return 'connection' in given && typeof given.connection !== 'function';
}

function missing(): HoldfastError {
  const message = `The processor is missing. The second argument must be ${WANTED}; the options come after it.`;
  return new HoldfastError('INVALID_OPTION', message, { option: 'processor' });
}

/** The processor of a worker with `batch`: one function for all jobs. */
export function batchProcessorOf(given: unknown): Handler {
  if (typeof given !== 'function')
    throw invalidOption('processor', given, 'a function (batch) => results, because batch is set; a file takes single jobs');
  return given as Handler;
}

function byName(handlers: ReadonlyMap<string, unknown>, queue: string): Handler {
  if (handlers.size === 0) throw invalidOption('processor', {}, `${WANTED}; a map needs a handler`);
  for (const [name, handler] of handlers) {
    if (typeof handler !== 'function')
      throw invalidOption(`processor.${name}`, handler, 'a function; a file can only run all jobs of a worker');
  }
  const find = (name: string): Handler => {
    const handler = handlers.get(name) as Handler | undefined;
    if (handler !== undefined) return handler;
    const known = [...handlers.keys()].map(show).join(', ');
    throw new HoldfastError(
      'NO_HANDLER',
      `The worker of "${queue}" has no handler for jobs called ${show(name)}, only for ${known}. Add one, or send such jobs to another queue.`,
      { queue },
    );
  };
  // The wrapper takes a third parameter only if a handler does: it costs every job an AbortSignal.
  const signals = [...handlers.values()].some((handler) => takesSignal(handler as Handler));
  return signals ? (job, token, signal) => find(job.name)(job, token, signal) : (job, token) => find(job.name)(job, token);
}
