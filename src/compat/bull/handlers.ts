// The functions given to `process`, by job name, and the calls of them: with promises or `done` callbacks, and with Bull's timeout.
import { HoldfastError, toError } from '../../errors.js';
import { invalidOption, show } from '../../runtime/check.js';
import { within } from '../time-limit.js';
import { unsupported } from './options.js';

export type DoneCallback = (error?: Error | null, value?: unknown) => void;

type AnyHandler = (job: never, done: DoneCallback) => unknown;

/** The name of jobs that were added without one. */
export const DEFAULT_NAME = '__default__';
const ANY_NAME = '*';

interface Runnable {
  id: string;
  name: string;
  opts: { timeout?: number };
}

export class Handlers {
  readonly #byName = new Map<string, AnyHandler>();
  readonly #onError: (error: Error) => void;
  /** Jobs that run at once, for all names together: Bull adds up the concurrency of each `process` call. */
  concurrency = 0;

  constructor(onError: (error: Error) => void) {
    this.#onError = onError;
  }

  /** Takes the arguments of `process([name], [concurrency], handler)`. */
  define(args: unknown[]): void {
    const name = typeof args[0] === 'string' && args.length > 1 ? args[0] : DEFAULT_NAME;
    const rest = name === args[0] && args.length > 1 ? args.slice(1) : args;
    const [concurrency, handler] = typeof rest[0] === 'number' ? [rest[0], rest[1]] : [1, rest[0]];
    if (!Number.isInteger(concurrency) || concurrency < 0) throw invalidOption('concurrency', concurrency, 'a whole number');
    if (typeof handler === 'string')
      throw unsupported(
        `A processor in a file of its own (${show(handler)})`,
        'Pass a function: the lock thread renews even while it blocks.',
      );
    if (typeof handler !== 'function')
      throw invalidOption('handler', handler, 'a function (job) => result or (job, done) => void');
    if (this.#byName.has(name)) {
      throw new HoldfastError(
        'INVALID_OPTION',
        `Cannot define the same handler twice: ${name}. Give each name one process() call.`,
        { option: 'handler' },
      );
    }
    this.#byName.set(name, handler as AnyHandler);
    this.concurrency += concurrency;
  }

  async run(job: Runnable): Promise<unknown> {
    const handler = this.#byName.get(job.name) ?? this.#byName.get(ANY_NAME);
    if (handler === undefined) throw new Error(`Missing process handler for job type ${job.name}`);
    const running = handler.length > 1 ? this.#withCallback(handler, job) : (handler as (job: unknown) => unknown)(job);
    const { timeout } = job.opts;
    return timeout === undefined ? running : within(timeout, Promise.resolve(running));
  }

  #withCallback(handler: AnyHandler, job: Runnable): Promise<unknown> {
    return new Promise((resolve, reject) => {
      let called = false;
      const done: DoneCallback = (error, value) => {
        if (called) {
          this.#onError(
            new HoldfastError('JOB_STATE', `done() of job ${job.id} was called more than once; only the first call counts.`, {
              jobId: job.id,
            }),
          );
          return;
        }
        called = true;
        if (error) reject(toError(error));
        else resolve(value);
      };
      // A handler may be async as well: if it rejects, `done` will not be called any more.
      Promise.resolve((handler as (job: unknown, done: DoneCallback) => unknown)(job, done)).catch(reject);
    });
  }
}
