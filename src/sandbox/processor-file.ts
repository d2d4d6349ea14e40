// Finds the file of a processor, when the worker is made: a worker whose file is missing must not take jobs.
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { HoldfastError } from '../errors.js';

/** `given`: a path, absolute or from the working directory, with or without `.js`; or a file URL, also as text. */
export function processorFileOf(given: string | URL): string {
  const path = pathOf(given);
  const found = [path, `${path}.js`].map(kindOf);
  if (found[0] === 'file') return path;
  if (found[1] === 'file') return `${path}.js`;
  if (found[0] === 'other') throw refused(`${path} is not a file. Name the file that exports the processor.`);
  throw refused(`File ${path} does not exist. Pass the path of a file that exports a function (job, token, signal) => result.`);
}

function pathOf(given: string | URL): string {
  const text = String(given);
  if (text === '') throw refused('The path of the processor is empty.');
  if (given instanceof URL || text.startsWith('file:')) {
    try {
      return fileURLToPath(given);
    } catch (cause) {
      throw refused(`The URL ${text} is not the URL of a file: a processor is loaded from the local disk.`, cause);
    }
  }
  return resolve(text);
}

function kindOf(path: string): 'file' | 'other' | 'none' {
  try {
    return statSync(path).isFile() ? 'file' : 'other';
  } catch {
    return 'none';
  }
}

function refused(message: string, cause?: unknown): HoldfastError {
  return new HoldfastError('INVALID_OPTION', message, { option: 'processor', cause });
}
