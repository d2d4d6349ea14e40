// The database file as the file system sees it: whether it may be ours before SQLite touches it, and whether it is still there.
import fs from 'node:fs';
import path from 'node:path';
import { HoldfastError } from '../../errors.js';
import { APPLICATION_ID } from './schema.js';

const MAGIC = 'SQLite format 3\0';
const HEADER_BYTES = 100;
const APPLICATION_ID_AT = 68;

/**
 * Throws unless the file is ours or new. It reads the header itself: only opening a foreign database could already change it
 * (SQLite would run its recovery and its checkpoint).
 */
export function inspectFile(file: string): void {
  const folder = path.dirname(file);
  const stats = fs.statSync(folder, { throwIfNoEntry: false });
  if (stats === undefined || !stats.isDirectory()) {
    throw unavailable(
      `The folder ${folder} of the SQLite store does not exist. Create it (mkdir -p ${folder}) or name another path.`,
    );
  }
  const header = readHeader(file);
  if (header !== undefined && header.length > 0) {
    const ours = header.toString('latin1', 0, MAGIC.length) === MAGIC && readApplicationId(header) === APPLICATION_ID;
    if (!ours) throw foreign(file);
  }
  // SQLite keeps two files beside the database, so the folder must be writable as well.
  if (!writable(folder) || (header !== undefined && !writable(file))) {
    throw new HoldfastError(
      'STORE_READONLY',
      `The SQLite store ${file} cannot be written to. Give this user write permission on the file and on its folder.`,
      { store: 'sqlite' },
    );
  }
}

/** Which file a path names at the moment; undefined when none. Costs 3 µs. */
export function identify(file: string): string | undefined {
  const stats = fs.statSync(file, { bigint: true, throwIfNoEntry: false });
  return stats === undefined ? undefined : `${stats.dev}:${stats.ino}`;
}

export function gone(file: string): HoldfastError {
  return new HoldfastError(
    'STORE_GONE',
    `The file of the SQLite store ${file} was deleted or replaced while it was open, so what is written now would be lost. ` +
      'Put the file back or start the program again with a new one.',
    { store: 'sqlite' },
  );
}

function readHeader(file: string): Buffer | undefined {
  let handle: number;
  try {
    handle = fs.openSync(file, 'r');
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw unavailable(`The SQLite store ${file} cannot be read (${message}). Check the path and its permissions.`, cause);
  }
  try {
    const header = Buffer.alloc(HEADER_BYTES);
    return header.subarray(0, fs.readSync(handle, header, 0, HEADER_BYTES, 0));
  } catch (cause) {
    throw unavailable(`The SQLite store ${file} cannot be read (${(cause as Error).message}). Name a file.`, cause);
  } finally {
    fs.closeSync(handle);
  }
}

function readApplicationId(header: Buffer): number | undefined {
  return header.length === HEADER_BYTES ? header.readUInt32BE(APPLICATION_ID_AT) : undefined;
}

function writable(target: string): boolean {
  try {
    fs.accessSync(target, fs.constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function unavailable(message: string, cause?: unknown): HoldfastError {
  return new HoldfastError('STORE_UNAVAILABLE', message, { cause, store: 'sqlite' });
}

function foreign(file: string): HoldfastError {
  return new HoldfastError(
    'STORE_FOREIGN',
    `${file} is not a database of Holdfast. Name another file for the store; this one was not touched.`,
    { store: 'sqlite' },
  );
}
