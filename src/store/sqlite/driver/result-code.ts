// Finds the name of SQLite's result code in an error, whichever binding threw it.

/** Result codes by number, with SQLite's text for each: https://sqlite.org/rescode.html */
const RESULTS: [code: number, name: string, text: string][] = [
  [1, 'ERROR', 'SQL logic error'],
  [3, 'PERM', 'access permission denied'],
  [4, 'ABORT', 'query aborted'],
  [5, 'BUSY', 'database is locked'],
  [6, 'LOCKED', 'database table is locked'],
  [7, 'NOMEM', 'out of memory'],
  [8, 'READONLY', 'attempt to write a readonly database'],
  [9, 'INTERRUPT', 'interrupted'],
  [10, 'IOERR', 'disk I/O error'],
  [11, 'CORRUPT', 'database disk image is malformed'],
  [13, 'FULL', 'database or disk is full'],
  [14, 'CANTOPEN', 'unable to open database file'],
  [15, 'PROTOCOL', 'locking protocol'],
  [17, 'SCHEMA', 'database schema has changed'],
  [18, 'TOOBIG', 'string or blob too big'],
  [19, 'CONSTRAINT', 'constraint failed'],
  [20, 'MISMATCH', 'datatype mismatch'],
  [21, 'MISUSE', 'bad parameter or other API misuse'],
  [22, 'NOLFS', 'large file support is disabled'],
  [23, 'AUTH', 'authorization denied'],
  [25, 'RANGE', 'column index out of range'],
  [26, 'NOTADB', 'file is not a database'],
  [522, 'IOERR_SHORT_READ', 'disk I/O error'],
  [4874, 'IOERR_SHMSIZE', 'disk I/O error'],
];

/** Returns undefined for an error that is not SQLite's. */
export function resultCode(error: unknown): string | undefined {
  const { code, errcode, message } = (error ?? {}) as { code?: unknown; errcode?: unknown; message?: unknown };
  if (typeof code !== 'string') return undefined;
  if (code.startsWith('SQLITE_')) return code;
  if (code !== 'ERR_SQLITE_ERROR') return undefined;
  const name = typeof errcode === 'number' ? byNumber(errcode) : byText(String(message));
  return `SQLITE_${name ?? 'ERROR'}`;
}

function byNumber(errcode: number): string | undefined {
  const find = (wanted: number): string | undefined => RESULTS.find(([code]) => code === wanted)?.[1];
  return find(errcode) ?? find(errcode % 256);
}

/** Finds the code by SQLite's text, because Deno gives no number with the errors of `exec` and of opening. */
function byText(message: string): string | undefined {
  return RESULTS.find(([, , text]) => message.includes(text))?.[1];
}
