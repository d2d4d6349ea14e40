// Finds the entry file of the lock thread: given by the user → beside this file → as a bundler made it → in the package as the
// application sees it. In a bundle, the file beside this one exists only if the user made it an entry of the bundle.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { ownFolders, resolveOutside, setEsmFile } from '../runtime/outside.js';

/** Set by the ESM entries (scripts/start-thread.mjs), whose `new Worker(new URL(…))` is a form that bundlers know. */
export interface EsmThread {
  /** URL of the ESM file; a file of its folder finds the packages that the application has. */
  here: string | undefined;
  /** Undefined if no file was made for it. */
  start(options: WorkerOptions): Worker | undefined;
}

const ENTRIES = ['thread-entry.js', 'thread-entry.mjs', 'thread-entry.cjs'];

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

/** A thread whose code or whose packages are missing fails when it starts. */
export function withAdvice(error: Error): Error {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== 'MODULE_NOT_FOUND' && code !== 'ERR_MODULE_NOT_FOUND') return error;
  return new Error(`${error.message.split('\n')[0]}. ${ADVICE}`, { cause: error });
}

/** In a bundle, the file has the ending that the bundler was asked for. */
function findEntry(): string {
  for (const folder of ownFolders()) {
    const file = ENTRIES.map((name) => join(folder, name)).find((path) => existsSync(path));
    if (file !== undefined) return file;
  }
  try {
    return resolveOutside('holdfast/lock-thread');
  } catch {
    throw new Error(`its entry file was not found. ${ADVICE}`);
  }
}
