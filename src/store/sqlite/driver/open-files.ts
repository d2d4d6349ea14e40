// Checks whether the files that SQLite has open are still the files at their paths: the database, its log (-wal) and the index of
// the log (-shm). If another program deletes, replaces or truncates one of them, SQLite continues without an error, and its writes
// are lost:
// - Another -shm: processes no longer see each other's locks, and each one overwrites what the others append to the log.
// - A truncated log: SQLite appends where the log ended before, behind a hole, and the next reader stops at the hole.
// - A truncated database: SQLite extends the file again with its next checkpoint, and leaves holes where it does not write.
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import type { Database, Statement } from './load.js';
import { mayBeOpenHere } from './file.js';

interface Identity {
  dev: bigint;
  ino: bigint;
}

const LOG_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
/** Offset of the page size in the header of a log. */
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
  /** Open for reading. SQLite holds no locks on its log, so any thread may open and close it. */
  #logHandle: number | undefined;
  #frameBytes = 0;
  #logBytesBefore = 0;
  /** Size of the log in bytes after the last commit. */
  logBytes = 0;

  /** `path` is the path of an open database. The other files are beside the real file, not beside a link to it. */
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

  /**
   * Call it at the beginning of a write transaction. False: the commit would be lost, or would damage what other processes have
   * written.
   */
  mayWrite(): boolean {
    const log = this.#logHandle ?? this.#learn();
    if (log === undefined || !isSame(stat(this.#indexPath), this.#index)) return false;
    this.#logBytesBefore = fs.fstatSync(log).size;
    return true;
  }

  /** Call it after a commit that `mayWrite` allowed. False: the commit is lost. */
  isWritten(): boolean {
    const log = stat(this.#logPath);
    if (!this.areThere(log) || log === undefined) return false;
    this.logBytes = Number(log.size);
    return this.logBytes <= this.#logBytesBefore || !this.#hasHole();
  }

  /** Returns whether the paths still lead to the open files, as far as the open files are known. */
  areThere(log = stat(this.#logPath)): boolean {
    const database = stat(this.#path);
    if (!isSame(database, this.#database) || database.size === 0n || this.#isCut(database.size)) return false;
    return this.#logHandle === undefined || (isSame(log, this.#log) && isSame(stat(this.#indexPath), this.#index));
  }

  /**
   * Closes the database. The last connection deletes the log by its path. If this process has another index than the other
   * processes, the index counts only the connections that it knows, and the log may contain writes of others. In that case the log
   * stays.
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

  /**
   * Returns whether the database file was truncated. A VACUUM makes the file smaller too, but then the database has fewer pages
   * than the file had.
   */
  #isCut(bytes: bigint): boolean {
    if (bytes < this.#databaseBytes && this.#needs(this.#databaseBytes)) return true;
    this.#databaseBytes = bytes;
    return false;
  }

  /** Returns whether the database with its log has at least this many bytes. */
  #needs(bytes: bigint): boolean {
    try {
      const [[pages] = [0], [pageBytes] = [0]] = [this.#pages.get(), this.#pageBytes.get()];
      return BigInt(pages) * BigInt(pageBytes) >= bytes;
    } catch {
      // SQLite itself found that a part of the file is missing.
      return true;
    }
  }

  /** Links the log under a second name, which it returns; undefined if there is no log. */
  #keepLog(): string | undefined {
    const kept = `${this.#logPath}-kept-${randomUUID()}`;
    try {
      fs.linkSync(this.#logPath, kept);
      return kept;
    } catch {
      return undefined;
    }
  }

  /**
   * Records the identity of the log and its index, which SQLite opens with the first transaction. Returns undefined if another
   * process has replaced them since.
   */
  #learn(): number | undefined {
    this.#log = stat(this.#logPath);
    this.#index = stat(this.#indexPath);
    if (this.#log === undefined || this.#index === undefined) return undefined;
    if (![this.#path, this.#logPath, this.#indexPath].every(mayBeOpenHere)) return undefined;
    this.#logHandle = fs.openSync(this.#logPath, 'r');
    return this.#logHandle;
  }

  /**
   * Returns whether the log has a hole. A frame must begin where the log ended before this commit: the frame of this commit, or a
   * later one.
   */
  #hasHole(): boolean {
    if (this.#frameBytes === 0) {
      const pageBytes = this.#read(PAGE_SIZE_AT);
      if (pageBytes === 0) return true;
      this.#frameBytes = pageBytes + FRAME_HEADER_BYTES;
    }
    const frames = Math.ceil(Math.max(0, this.#logBytesBefore - LOG_HEADER_BYTES) / this.#frameBytes);
    const at = LOG_HEADER_BYTES + frames * this.#frameBytes;
    // A frame begins with its page number, which is never 0.
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
