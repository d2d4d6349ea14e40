// Whether the files that SQLite has open are still those that their names lead to: the database, its log (-wal) and the index of the log
// (-shm). If one of them was deleted, replaced or cut by somebody else, SQLite goes on without an error, and what it writes is lost:
// - another -shm: processes no longer see each other's locks, and each of them overwrites what the others append to the log.
// - a log that was cut: SQLite appends where the log ended before, behind a hole, and its next reader stops at the hole.
// - a database that was cut: SQLite fills the file up again with its next checkpoint, and leaves holes where it does not write.
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import type { Database, Statement } from './driver.js';
import { mayBeOpenHere } from './file.js';

interface Identity {
  dev: bigint;
  ino: bigint;
}

const LOG_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
/** Where the header of a log has the size of a page. */
const PAGE_SIZE_AT = 8;

export class OpenFiles {
  readonly #path: string;
  readonly #logPath: string;
  readonly #indexPath: string;
  readonly #database: Identity | undefined;
  readonly #pages: Statement<[count: number]>;
  readonly #pageBytes: Statement<[bytes: number]>;
  #databaseBytes: bigint;
  #log: Identity | undefined;
  #index: Identity | undefined;
  /** Open for reading. SQLite holds no locks on its log, so that any thread may open and close it. */
  #logHandle: number | undefined;
  #frameBytes = 0;
  #logBytesBefore = 0;
  /** Of the log, after the last commit. */
  logBytes = 0;

  /** The path of a database that is open. The other files lie beside it, not beside a link to it. */
  constructor(path: string, db: Database) {
    const real = fs.realpathSync(path);
    this.#path = path;
    this.#logPath = `${real}-wal`;
    this.#indexPath = `${real}-shm`;
    const database = stat(path);
    this.#database = database;
    this.#databaseBytes = database?.size ?? 0n;
    this.#pages = db.prepare('PRAGMA page_count');
    this.#pageBytes = db.prepare('PRAGMA page_size');
  }

  /** At the beginning of a write transaction: false when its commit would be lost, or damage what others have written. */
  mayWrite(): boolean {
    const log = this.#logHandle ?? this.#learn();
    if (log === undefined || !isSame(stat(this.#indexPath), this.#index)) return false;
    this.#logBytesBefore = fs.fstatSync(log).size;
    return true;
  }

  /** After a commit that `mayWrite` allowed: false when the commit is lost. */
  isWritten(): boolean {
    const log = stat(this.#logPath);
    if (!this.areThere(log) || log === undefined) return false;
    this.logBytes = Number(log.size);
    return this.logBytes <= this.#logBytesBefore || !this.#hasHole();
  }

  /** Whether the names still lead to the open files, as far as these are known. */
  areThere(log = stat(this.#logPath)): boolean {
    const database = stat(this.#path);
    if (!isSame(database, this.#database) || database.size === 0n || this.#isCut(database.size)) return false;
    return this.#logHandle === undefined || (isSame(log, this.#log) && isSame(stat(this.#indexPath), this.#index));
  }

  /**
   * Closes the database. The last connection deletes the log by its name. If our index is not that of the others, it counts only what we
   * know of, and the log may hold what others have written: the log then stays.
   */
  close(database: Pick<Database, 'close'>): void {
    const kept = this.areThere() ? undefined : this.#keepLog();
    database.close();
    if (this.#logHandle !== undefined) fs.closeSync(this.#logHandle);
    this.#logHandle = undefined;
    if (kept === undefined) return;
    if (fs.existsSync(this.#logPath)) fs.unlinkSync(kept);
    else fs.renameSync(kept, this.#logPath);
  }

  /** A file gets smaller by a VACUUM, too: then the database has fewer pages than the file had. */
  #isCut(bytes: bigint): boolean {
    if (bytes < this.#databaseBytes && this.#needs(this.#databaseBytes)) return true;
    this.#databaseBytes = bytes;
    return false;
  }

  /** Whether the database is as large as that, with its log. */
  #needs(bytes: bigint): boolean {
    try {
      const [[pages] = [0], [pageBytes] = [0]] = [this.#pages.get(), this.#pageBytes.get()];
      return BigInt(pages) * BigInt(pageBytes) >= bytes;
    } catch {
      // SQLite has found that a part of the file is missing.
      return true;
    }
  }

  /** Under a second name, if there is one. */
  #keepLog(): string | undefined {
    const kept = `${this.#logPath}-kept-${randomUUID()}`;
    try {
      fs.linkSync(this.#logPath, kept);
      return kept;
    } catch {
      return undefined;
    }
  }

  /** SQLite opens the log and its index with the first transaction. Another process may have put others in their place since. */
  #learn(): number | undefined {
    this.#log = stat(this.#logPath);
    this.#index = stat(this.#indexPath);
    if (this.#log === undefined || this.#index === undefined) return undefined;
    if (![this.#path, this.#logPath, this.#indexPath].every(mayBeOpenHere)) return undefined;
    this.#logHandle = fs.openSync(this.#logPath, 'r');
    return this.#logHandle;
  }

  /** Where the log ended before this commit, a frame begins now: that of the commit, or one that was written since. */
  #hasHole(): boolean {
    if (this.#frameBytes === 0) {
      const pageBytes = this.#read(PAGE_SIZE_AT);
      if (pageBytes === 0) return true;
      this.#frameBytes = pageBytes + FRAME_HEADER_BYTES;
    }
    const frames = Math.ceil(Math.max(0, this.#logBytesBefore - LOG_HEADER_BYTES) / this.#frameBytes);
    const at = LOG_HEADER_BYTES + frames * this.#frameBytes;
    // A frame begins with the number of its page, which is never 0.
    return at < this.logBytes && this.#read(at) === 0;
  }

  #read(position: number): number {
    if (this.#logHandle === undefined) return 0;
    fs.readSync(this.#logHandle, word.fill(0), 0, word.length, position);
    return word.readUInt32BE();
  }
}

const word = Buffer.alloc(4);

function stat(file: string): fs.BigIntStats | undefined {
  return fs.statSync(file, { bigint: true, throwIfNoEntry: false });
}

function isSame(stats: fs.BigIntStats | undefined, known: Identity | undefined): stats is fs.BigIntStats {
  return stats !== undefined && known !== undefined && stats.ino === known.ino && stats.dev === known.dev;
}
