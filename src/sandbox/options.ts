// The options of a worker whose processor is a file. The first three have BullMQ's names.
import type { ForkOptions } from 'node:child_process';
import type { WorkerOptions as ThreadOptions } from 'node:worker_threads';
import { checkBoolean, checkInteger, checkText, invalidOption, MAX_TIMER_MS } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';

export interface SandboxOptions {
  /** A thread or process takes at most this many jobs, and another one takes its place. Default: no limit. */
  maxJobsPerChild?: number;
  /** A thread or process that has had no job for this long ends. Default 60,000. */
  maxIdleMs?: number;
  /**
   * How many MB the heap of a thread or process may have. A job that needs more fails, and the reason says so. After a job that leaves more
   * than three quarters of it in use, another thread or process takes over. Default: what Node allows.
   */
  maxMemoryMb?: number;
  /** How long a handler may go on after its signal was aborted. Then its thread or process is ended. Default 5000. */
  graceMs?: number;
  /** How long the file may take to load. Default 30,000. */
  maxLoadMs?: number;
  /** The path of `holdfast/dist/sandbox/child-entry.js`, for bundled programs. Default: found by itself. */
  entry?: string;
}

export interface SandboxWorkerOptions {
  /** For a processor in a file. true: jobs run in threads of this process. Default false: in child processes. */
  useWorkerThreads?: boolean;
  /** Read as `child_process.fork` reads it. */
  workerForkOptions?: ForkOptions;
  /** Passed to `new Worker` of `node:worker_threads`. */
  workerThreadsOptions?: ThreadOptions;
  sandbox?: SandboxOptions;
}

export const SANDBOX_OPTION_NAMES = {
  useWorkerThreads: true,
  workerForkOptions: true,
  workerThreadsOptions: true,
  sandbox: true,
} as const satisfies { [K in keyof SandboxWorkerOptions]-?: true };

/** The settings of a pool. */
export interface PoolOptions {
  readonly threads: boolean;
  readonly forkOptions: ForkOptions;
  readonly threadOptions: ThreadOptions;
  readonly maxJobsPerChild: number;
  readonly maxIdleMs: number;
  readonly maxMemoryMb: number | undefined;
  readonly graceMs: number;
  readonly maxLoadMs: number;
  readonly entry: string | undefined;
}

const NAMES = new OptionNames<SandboxOptions>({
  of: 'worker',
  known: { maxJobsPerChild: true, maxIdleMs: true, maxMemoryMb: true, graceMs: true, maxLoadMs: true, entry: true },
});

/** In MB. Node itself needs about as much to start a thread. */
const LEAST_MEMORY = 16;

export function checkSandboxOptions(given: SandboxWorkerOptions): PoolOptions {
  const { useWorkerThreads = false, workerForkOptions = {}, workerThreadsOptions = {}, sandbox = {} } = given;
  if (typeof sandbox !== 'object' || sandbox === null || Array.isArray(sandbox))
    throw invalidOption('sandbox', sandbox, 'an object such as { maxJobsPerChild: 100 }');
  NAMES.check(sandbox, 'sandbox');
  const { maxJobsPerChild, maxIdleMs = 60_000, maxMemoryMb, graceMs = 5000, maxLoadMs = 30_000, entry } = sandbox;
  const timer = { max: MAX_TIMER_MS };
  if (maxMemoryMb !== undefined) checkInteger('sandbox.maxMemoryMb', maxMemoryMb, { min: LEAST_MEMORY, max: 2 ** 20 });
  if (maxJobsPerChild !== undefined) checkInteger('sandbox.maxJobsPerChild', maxJobsPerChild, { min: 1 });
  return {
    threads: checkBoolean('useWorkerThreads', useWorkerThreads),
    forkOptions: checkForkOptions(workerForkOptions),
    threadOptions: checkObject('workerThreadsOptions', workerThreadsOptions),
    maxJobsPerChild: maxJobsPerChild ?? Number.POSITIVE_INFINITY,
    maxIdleMs: checkInteger('sandbox.maxIdleMs', maxIdleMs, timer),
    maxMemoryMb,
    graceMs: checkInteger('sandbox.graceMs', graceMs, timer),
    maxLoadMs: checkInteger('sandbox.maxLoadMs', maxLoadMs, { min: 1, ...timer }),
    entry: entry === undefined ? undefined : checkText('sandbox.entry', entry, 4096),
  };
}

function checkForkOptions(given: ForkOptions): ForkOptions {
  checkObject('workerForkOptions', given);
  const { execArgv, detached } = given;
  if (execArgv !== undefined && !isTexts(execArgv))
    throw invalidOption('workerForkOptions.execArgv', execArgv, "a list of strings such as ['--expose-gc']");
  // A detached child is in a process group of its own, which an interrupt at the terminal does not reach.
  if (detached === true) throw invalidOption('workerForkOptions.detached', detached, 'false: the worker ends its processes');
  return given;
}

function isTexts(given: unknown): boolean {
  return Array.isArray(given) && given.every((each) => typeof each === 'string');
}

function checkObject<T>(option: string, given: T): T {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw invalidOption(option, given, 'an object');
  return given;
}
