// Finds the entry file of the lock thread: given by the user → beside this file → as a bundler made it → in the package as the
// application sees it. In a bundle, the file beside this one exists only if the user made it an entry of the bundle.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Worker, type WorkerOptions } from 'node:worker_threads';

/** Set by the ESM entries (scripts/start-thread.mjs), whose `new Worker(new URL(…))` is a form that bundlers know. */
export interface EsmThread {
  /** URL of the ESM file; a file of its folder finds the packages that the application has. */
  here: string | undefined;
  /** Undefined if no file was made for it. */
  start(options: WorkerOptions): Worker | undefined;
}

const ADVICE =
  'If this program was bundled, leave holdfast out of the bundle (external), or name the file with the option lockThreadEntry: …/node_modules/holdfast/dist/background/thread-entry.js';

let esm: EsmThread | undefined;

export function setEsmThread(given: EsmThread): void {
  esm = given;
}

export function startThread(given: string | undefined, options: WorkerOptions): Worker {
  if (given !== undefined) {
    if (!existsSync(given)) throw new Error(`the entry file ${given}, the option lockThreadEntry, does not exist`);
    return new Worker(given, options);
  }
  const folder = typeof __dirname === 'string' ? __dirname : undefined;
  const sibling = folder === undefined ? undefined : join(folder, 'thread-entry.js');
  if (sibling !== undefined && existsSync(sibling)) return new Worker(sibling, options);
  return esm?.start(options) ?? new Worker(findInPackage([sibling, esm?.here, join(process.cwd(), 'index.js')]), options);
}

/** A thread whose code or whose packages are missing fails when it starts. */
export function withAdvice(error: Error): Error {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== 'MODULE_NOT_FOUND' && code !== 'ERR_MODULE_NOT_FOUND') return error;
  return new Error(`${error.message.split('\n')[0]}. ${ADVICE}`, { cause: error });
}

function findInPackage(froms: (string | undefined)[]): string {
  for (const from of froms) {
    if (from === undefined) continue;
    try {
      return createRequire(from).resolve('holdfast/lock-thread');
    } catch {
      // The next one may see it.
    }
  }
  throw new Error(`its entry file was not found. ${ADVICE}`);
}
