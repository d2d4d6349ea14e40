// The errors of children that end before their handlers, in words for `failedReason`.
import { HoldfastError } from '../errors.js';
import type { CarrierExit } from './carrier.js';

const NO_TYPESCRIPT =
  " This Node.js loads no TypeScript. Compile the file, or use Node.js 22.18 or newer, or run it in a process with a loader: useWorkerThreads: false and workerForkOptions: { execArgv: ['--import', 'tsx'] }.";

export function unloadableError(file: string, cause: Error): HoldfastError {
  const hint = /Unknown file extension "\.[cm]?ts"/.test(cause.message) ? NO_TYPESCRIPT : '';
  return new HoldfastError('PROCESSOR_UNLOADABLE', `The processor file ${file} cannot be loaded: ${cause.message}${hint}`, {
    cause,
  });
}

/** `title`: of the child. */
export function diedError(title: string, exit: CarrierExit, jobId?: string): HoldfastError {
  const during = jobId === undefined ? '' : ` while job ${jobId} ran`;
  const lines = exit.lastLines === '' ? '' : `\nLast lines on stderr:\n${exit.lastLines}`;
  const message = `The sandbox (${title}) ${howOf(exit)}${during}.${lines}`;
  return new HoldfastError('SANDBOX_DIED', message, { cause: exit.error, ...(jobId === undefined ? {} : { jobId }) });
}

function howOf({ code, signal, outOfMemory, error }: CarrierExit): string {
  if (outOfMemory) return 'ran out of memory: its heap reached its limit (see sandbox.maxMemoryMb)';
  if (error !== undefined) return `failed: ${error.message}`;
  if (signal === 'SIGKILL') return 'was ended by SIGKILL (the system sends it too, when memory runs out)';
  if (signal !== null) return `was ended by ${signal}`;
  return `ended with exit code ${code ?? 'unknown'}`;
}

export function stuckError(title: string, jobId: string, graceMs: number, reason: unknown): HoldfastError {
  const why = reason instanceof Error ? reason.message : String(reason);
  const message = `The handler of job ${jobId} did not stop within ${graceMs} ms after its signal was aborted (${why}), so its sandbox (${title}) was ended.`;
  return new HoldfastError('SANDBOX_KILLED', message, { jobId, cause: reason });
}
