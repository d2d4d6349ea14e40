// Sets the file mode of a SQLite store's files. SQLite gives its log (`-wal`) and its shared memory (`-shm`) the mode of the database, so
// the database gets the mode before SQLite opens it. Existing files get the mode too.
import fs from 'node:fs';
import { HoldfastError } from '../errors.js';
import { invalidOption } from '../runtime/check.js';

const OWNER_READS_AND_WRITES = 0o600;

/** Accepts a number (0o600), or its octal digits ('600') as in a URL. */
export function readFileMode(given: unknown): number {
  const mode = typeof given === 'string' && /^0?[0-7]{3}$/.test(given) ? Number.parseInt(given, 8) : given;
  if (
    typeof mode === 'number' &&
    Number.isInteger(mode) &&
    mode >= 0 &&
    mode <= 0o777 &&
    (mode & OWNER_READS_AND_WRITES) === OWNER_READS_AND_WRITES
  ) {
    return mode;
  }
  throw invalidOption('fileMode', given, "a mode that lets the owner read and write, such as 0o600 or '600'");
}

/** Sets the mode, and creates an empty file if there is none. If the folder is missing, SQLite reports it later. */
export function applyFileMode(path: string, mode: number): void {
  try {
    create(path, mode);
    for (const file of [path, `${path}-wal`, `${path}-shm`]) setMode(file, mode);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return;
    const message = `The files of the SQLite store ${path} cannot be given the mode ${mode.toString(8)} (${(cause as Error).message}). Let their owner do it, or leave fileMode out.`;
    throw new HoldfastError('STORE_UNAVAILABLE', message, { cause, option: 'fileMode', store: 'sqlite' });
  }
}

/** Creates the file. Never opens an existing one: closing it would drop the locks that SQLite holds on it for this process. */
function create(path: string, mode: number): void {
  try {
    fs.closeSync(fs.openSync(path, 'ax', mode));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

function setMode(file: string, mode: number): void {
  const stats = fs.statSync(file, { throwIfNoEntry: false });
  // A new file lacks the bits that the umask of the process removed.
  if (stats !== undefined && (stats.mode & 0o777) !== mode) fs.chmodSync(file, mode);
}
