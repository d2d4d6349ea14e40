// Finds the entry file of the lock thread, in this order: the user's option, the file beside this one, the bundler's file, the package
// as the application sees it. In a bundle, the file beside this one exists only if the user made it an entry of the bundle.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { findOwnFile, setEsmFile } from '../runtime/outside.js';

/** Set by the ESM entries (scripts/start-thread.mjs), whose `new Worker(new URL(…))` is a form that bundlers know. */
export interface EsmThread {
  /** URL of the ESM file. A lookup from its folder finds the packages of the application. */
  here: string | undefined;
  /** Starts the thread. Returns undefined if the bundler made no file for it. */
  start(options: WorkerOptions): Worker | undefined;
}

const ADVICE =
  'If this program was bundled, leave holdfast out of the bundle (external), or name the file with the option lockThreadEntry: …/node_modules/holdfast/dist/background/thread-entry.js';

let esm: EsmThread | undefined;

export function setEsmThread(given: EsmThread): void {
  esm = given;
  setEsmFile(given.here);
}

export function startThread(given: string | undefined, options: WorkerOptions): Worker {
  if (given !== undefined) {
    if (!existsSync(given)) throw new Error(`the entry file ${given}, the option lockThreadEntry, does not exist`);
    return new Worker(given, options);
  }
  const sibling = typeof __dirname === 'string' ? join(__dirname, 'thread-entry.js') : undefined;
  if (sibling !== undefined && existsSync(sibling)) return new Worker(sibling, options);
  return esm?.start(options) ?? new Worker(findEntry(), options);
}

/** Adds advice to the error of a thread that failed at its start because its code or packages are missing. */
export function withAdvice(error: Error): Error {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== 'MODULE_NOT_FOUND' && code !== 'ERR_MODULE_NOT_FOUND') return error;
  return new Error(`${error.message.split('\n')[0]}. ${ADVICE}`, { cause: error });
}

function findEntry(): string {
  const found = findOwnFile('thread-entry', 'holdfast/lock-thread');
  if (found === undefined) throw new Error(`its entry file was not found. ${ADVICE}`);
  return found;
}
