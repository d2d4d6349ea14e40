// The processor of a worker that runs in a file of its own: outside, a handler like any other; inside, a pool of threads or processes. The
// sandbox never calls the store: its handlers' calls are made on the Job, and the worker settles the outcome.
import { HoldfastError } from '../errors.js';
import type { Job } from '../handle/job.js';
import { checkSandboxOptions, type SandboxWorkerOptions } from './options.js';
import { ChildPool } from './pool.js';
import { processorFileOf } from './processor-file.js';

export interface Sandbox {
  readonly pool: ChildPool;
  readonly handler: (job: Job, token: string, signal?: AbortSignal) => Promise<unknown>;
}

/** Returns undefined if the processor is not a file. Throws if the file does not exist. */
export function sandboxOf(
  given: unknown,
  opts: SandboxWorkerOptions & { batch?: unknown },
  queue: string,
  onError: (error: Error) => void,
): Sandbox | undefined {
  const isFile = typeof given === 'string' || given instanceof URL;
  if (!isFile || opts.batch !== undefined) {
    if (opts.sandbox !== undefined && !isFile) throw needless();
    return undefined;
  }
  const pool = new ChildPool({ file: processorFileOf(given), queue, options: checkSandboxOptions(opts), onError });
  return { pool, handler: (job, _token, signal) => pool.run(job, signal) };
}

function needless(): HoldfastError {
  const message = 'The option sandbox is for a processor in a file: pass the path of the file, or leave the option out.';
  return new HoldfastError('INVALID_OPTION', message, { option: 'sandbox' });
}
