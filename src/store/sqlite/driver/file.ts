// The database file as the file system sees it: whether it is a Holdfast file, checked before SQLite touches it, and whether it is
// open.
import fs from 'node:fs';
import path from 'node:path';
import { HoldfastError } from '../../../errors.js';
import { refusalOf } from '../state/schema.js';

const MAGIC = 'SQLite format 3\0';
const HEADER_BYTES = 100;
const APPLICATION_ID_AT = 68;

/**
 * Throws unless the file is a Holdfast file or new. It reads the header itself, because merely opening a foreign database could
 * change it: SQLite would run its recovery and its checkpoint.
 * A file that this process already has open is left to SQLite. On most systems a process that closes a file loses all its locks on
 * that file. The next connection that closes would then take the database for unused, and delete its log.
 */
export function inspectFile(file: string): void {
  const folder = path.dirname(file);
  const stats = fs.statSync(folder, { throwIfNoEntry: false });
  if (stats === undefined || !stats.isDirectory()) {
    throw unavailable(
      `The folder ${folder} of the SQLite store does not exist. Create it (mkdir -p ${folder}) or name another path.`,
    );
  }
  const isThere = fs.existsSync(file);
  const header = isThere && !isOpenHere(file) ? readHeader(file) : undefined;
  if (header !== undefined && header.length > 0) {
    const isDatabase = header.toString('latin1', 0, MAGIC.length) === MAGIC;
    const refusal = refusalOf(file, isDatabase ? readApplicationId(header) : undefined);
    if (refusal !== undefined) throw refusal;
  }
  // SQLite creates two files beside the database, so the folder must be writable too.
  if (!writable(folder) || (isThere && !writable(file))) {
    throw new HoldfastError(
      'STORE_READONLY',
      `The SQLite store ${file} cannot be written to. Give this user write permission on the file and on its folder.`,
      { store: 'sqlite' },
    );
  }
}

/** Returns the identity of the file at a path; undefined if there is none. */
function identify(file: string): string | undefined {
  return identityOf(fs.statSync(file, { bigint: true, throwIfNoEntry: false }));
}

/** Returns a text that changes when the database or its log is written. */
export function lastWrite(file: string): string {
  const of = (name: string): string => {
    const stats = fs.statSync(name, { bigint: true, throwIfNoEntry: false });
    return stats === undefined ? 'none' : `${stats.mtimeNs} ${stats.size}`;
  };
  return `${of(file)} ${of(`${file}-wal`)}`;
}

function identityOf(stats: fs.BigIntStats | undefined): string | undefined {
  return stats === undefined ? undefined : `${stats.dev}:${stats.ino}`;
}

const OPEN_FILES = ['/proc/self/fd', '/dev/fd'];

/** False if no thread of this process has the file open. True if the system cannot list open files. */
export function mayBeOpenHere(file: string): boolean {
  return OPEN_FILES.every((folder) => !fs.existsSync(folder)) || isOpenHere(file);
}

/**
 * Returns whether any thread of this process has the file open, with any library. If the system cannot list open files (Windows),
 * it returns false: there, closing a file loses no locks.
 */
function isOpenHere(file: string, but?: number): boolean {
  const list = OPEN_FILES.find((folder) => fs.existsSync(folder));
  if (list === undefined) return false;
  const identity = identify(file);
  return fs.readdirSync(list).some((name) => Number(name) !== but && identityOfOpen(list, name) === identity);
}

/** Uses the name where it leads to the open file (Linux), because Deno numbers open files in its own way. */
function identityOfOpen(list: string, name: string): string | undefined {
  try {
    const byName = list.startsWith('/proc/');
    return identityOf(
      byName ? fs.statSync(path.join(list, name), { bigint: true }) : fs.fstatSync(Number(name), { bigint: true }),
    );
  } catch {
    // The file was closed since the folder was listed.
    return undefined;
  }
}

export function gone(file: string): HoldfastError {
  return new HoldfastError(
    'STORE_GONE',
    `The file of the SQLite store ${file}, or one of the two beside it (${path.basename(file)}-wal, ${path.basename(file)}-shm), was deleted or replaced or cut while it was open, so what is written now would be lost. ` +
      'End all programs that use the store, then start them again.',
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
    // Another thread may have opened the file meanwhile. Closing would drop its locks, so leak this handle.
    if (!isOpenHere(file, handle)) fs.closeSync(handle);
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
