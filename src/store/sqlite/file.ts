// The database file as the file system sees it: whether it may be ours before SQLite touches it, and whether it is still there.
import fs from 'node:fs';
import path from 'node:path';
import { HoldfastError } from '../../errors.js';
import { APPLICATION_ID, foreign } from './schema.js';

const MAGIC = 'SQLite format 3\0';
const HEADER_BYTES = 100;
const APPLICATION_ID_AT = 68;

/**
 * Throws unless the file is ours or new. It reads the header itself: only opening a foreign database could already change it
 * (SQLite would run its recovery and its checkpoint). A file that this process has open is left to SQLite: on most systems a process that
 * closes a file loses all its locks on it, and whoever opened the database next would take it for unused when he left, and delete its log.
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
    const ours = header.toString('latin1', 0, MAGIC.length) === MAGIC && readApplicationId(header) === APPLICATION_ID;
    if (!ours) throw foreign(file);
  }
  // SQLite keeps two files beside the database, so the folder must be writable as well.
  if (!writable(folder) || (isThere && !writable(file))) {
    throw new HoldfastError(
      'STORE_READONLY',
      `The SQLite store ${file} cannot be written to. Give this user write permission on the file and on its folder.`,
      { store: 'sqlite' },
    );
  }
}

/** Which file a path names at the moment; undefined when none. */
function identify(file: string): string | undefined {
  return identityOf(fs.statSync(file, { bigint: true, throwIfNoEntry: false }));
}

/** Changes when the database or its log is written. */
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

/** False when no thread of this process has it open. Where open files cannot be listed, true. */
export function mayBeOpenHere(file: string): boolean {
  return OPEN_FILES.every((folder) => !fs.existsSync(folder)) || isOpenHere(file);
}

/** Whether any thread of this process has it open, with whatever. Where open files cannot be listed (Windows), closing one loses no locks. */
function isOpenHere(file: string, but?: number): boolean {
  const list = OPEN_FILES.find((folder) => fs.existsSync(folder));
  if (list === undefined) return false;
  const identity = identify(file);
  return fs.readdirSync(list).some((name) => Number(name) !== but && identityOfOpen(list, name) === identity);
}

/** By its name where that leads to the open file (Linux): Deno numbers open files in a way of its own. */
function identityOfOpen(list: string, name: string): string | undefined {
  try {
    const byName = list.startsWith('/proc/');
    return identityOf(
      byName ? fs.statSync(path.join(list, name), { bigint: true }) : fs.fstatSync(Number(name), { bigint: true }),
    );
  } catch {
    // It was closed since.
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
    // Another thread may have opened it meanwhile: better one handle too many.
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
