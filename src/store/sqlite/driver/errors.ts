// Turns SQLite's error codes into Holdfast errors. No other file does.
import { HoldfastError, isError } from '../../../errors.js';
import { resultCode } from './result-code.js';

/** The effect of an error on the operations that shared its transaction. */
export type Blame =
  /** Another connection holds a lock: the whole batch is retried. */
  | 'busy'
  /** The store has an error, so the transaction cannot continue: all its operations fail. */
  | 'store'
  /** Only this operation is at fault. */
  | 'operation';

export function blameOf(error: unknown): Blame {
  const code = resultCode(error);
  if (code === undefined) return 'operation';
  if (is(code, 'BUSY', 'LOCKED', 'PROTOCOL')) return 'busy';
  return is(code, 'CONSTRAINT', 'TOOBIG', 'MISMATCH', 'RANGE', 'ERROR') ? 'operation' : 'store';
}

/** Returns whether the log is shorter than its index says. SQLite itself never leaves the log like that. */
export function isCutLog(error: unknown): boolean {
  return resultCode(error) === 'SQLITE_IOERR_SHORT_READ';
}

/** Returns whether the connection, or the file, may only be read. */
export function isReadOnly(error: unknown): boolean {
  return is(resultCode(error) ?? '', 'READONLY');
}

export function toStoreError(error: unknown, path: string): HoldfastError {
  if (error instanceof HoldfastError) return error;
  const code = resultCode(error);
  const reason = isError(error) ? error.message : String(error);
  const fail = (kind: HoldfastError['code'], message: string, retryable = false): HoldfastError =>
    new HoldfastError(kind, `${message} (${code ?? 'no code'}: ${reason})`, { cause: error, retryable, store: 'sqlite' });
  if (code === undefined) return fail('STORE_FAILED', `The SQLite store ${path} failed in an unexpected way`);
  if (is(code, 'BUSY', 'LOCKED', 'PROTOCOL')) return busy(path, error);
  if (is(code, 'FULL') || code === 'SQLITE_IOERR_SHMSIZE') {
    return fail(
      'STORE_FULL',
      `There is no room left for the SQLite store ${path}: nothing of the call was written. Free some space and try again`,
      true,
    );
  }
  if (is(code, 'READONLY')) {
    return fail(
      'STORE_READONLY',
      `The SQLite store ${path} cannot be written to. Check the permissions of the file and of its folder`,
    );
  }
  if (is(code, 'CANTOPEN', 'PERM', 'AUTH')) {
    return fail(
      'STORE_UNAVAILABLE',
      `The SQLite store ${path} cannot be opened. Check that the path is right and may be read and written`,
      true,
    );
  }
  if (is(code, 'NOTADB'))
    return fail('STORE_FOREIGN', `${path} is not a SQLite database. Name another file; this one was not touched`);
  if (is(code, 'CORRUPT')) {
    return fail(
      'STORE_FAILED',
      `The SQLite store ${path} is damaged. Restore it from a backup, or save what can be read with: sqlite3 ${path} .recover`,
    );
  }
  if (is(code, 'IOERR', 'NOMEM', 'INTERRUPT')) {
    return fail('STORE_UNAVAILABLE', `The SQLite store ${path} could not be read or written at the moment. Check its disk`, true);
  }
  return fail('STORE_FAILED', `The SQLite store ${path} reported an error`);
}

export function busy(path: string, cause?: unknown): HoldfastError {
  return new HoldfastError(
    'STORE_BUSY',
    `Another program holds the write lock of the SQLite store ${path} for too long. Look for a transaction that was left open on it (fuser ${path}).`,
    { cause, retryable: true, store: 'sqlite' },
  );
}

function is(code: string, ...families: string[]): boolean {
  return families.some((family) => code === `SQLITE_${family}` || code.startsWith(`SQLITE_${family}_`));
}
