// Checks whether the files that SQLite has open are still the files at their paths: the database, its log (-wal) and the index of
// the log (-shm). If another program deletes, replaces or truncates one of them, SQLite continues without an error, and its writes
// are lost:
// - Another -shm: processes no longer see each other's locks, and each one overwrites what the others append to the log.
// - A truncated log: SQLite appends where the log ended before, behind a hole, and the next reader stops at the hole.
// - A truncated database: SQLite extends the file again with its next checkpoint, and leaves holes where it does not write.
// A checkpoint then damages the database: it copies by an index that does not know what other processes have written to the log. SQLite
// also copies when the last connection of a file is closed, and deletes the log. None of the bindings can switch that off.
import fs from 'node:fs';
import type { Database, Driver, Statement } from './load.js';
import { mayBeOpenHere } from './file.js';

interface Identity {
  dev: bigint;
  ino: bigint;
}

const LOG_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
/** Offset of the page size in the header of a log. */
const PAGE_SIZE_AT = 8;

/** Of this thread. */
const open = new Set<OpenFiles>();
/** Databases that must not be closed. A binding closes what nothing refers to. */
const leaked: Database[] = [];

/**
 * A binding closes its connections when the thread ends by itself. Nothing may be closed without a look at the files, so this comes
 * first.
 */
function leaveAll(): void {
  for (const files of open) files.leave();
}

export class OpenFiles {
  readonly #db: Database;
  readonly #driver: Driver;
  readonly #path: string;
  readonly #logPath: string;
  readonly #indexPath: string;
  readonly #database: Identity | undefined;
  readonly #pages: Statement<[count: number]>;
  readonly #pageBytes: Statement<[bytes: number]>;
  #databaseBytes: bigint;
  readonly #log: Identity | undefined;
  readonly #index: Identity | undefined;
  /** Open for reading. SQLite holds no locks on its log, so any thread may open and close it. */
  #logHandle: number | undefined;
  #frameBytes = 0;
  #logBytesBefore = 0;
  #isCutLog = false;
  /** Size of the log in bytes after the last commit. */
  logBytes = 0;

  /** `path` is the path of an open database. The other files are beside the real file, not beside a link to it. */
  constructor(path: string, db: Database, driver: Driver) {
    this.#db = db;
    this.#driver = driver;
    const real = fs.realpathSync(path);
    this.#path = path;
    this.#logPath = `${real}-wal`;
    this.#indexPath = `${real}-shm`;
    const database = stat(path);
    this.#database = database;
    this.#databaseBytes = database?.size ?? 0n;
    this.#pages = db.prepare('PRAGMA page_count');
    this.#pageBytes = db.prepare('PRAGMA page_size');
    // SQLite opens the log and its index with the first statement that reads.
    this.#pages.get();
    this.#log = stat(this.#logPath);
    this.#index = stat(this.#indexPath);
    // Unless another process has replaced them since.
    const areOurs = this.#log !== undefined && [path, this.#logPath, this.#indexPath].every(mayBeOpenHere);
    if (areOurs) this.#logHandle = fs.openSync(this.#logPath, 'r');
    if (open.size === 0) process.on('exit', leaveAll);
    open.add(this);
  }

  /**
   * Call it at the beginning of a write transaction. False: the commit would be lost, or would damage what other processes have
   * written.
   */
  mayWrite(): boolean {
    const log = this.#logHandle;
    if (log === undefined || !isSame(stat(this.#indexPath), this.#index)) return false;
    this.#logBytesBefore = fs.fstatSync(log).size;
    return true;
  }

  /** Call it after a commit that `mayWrite` allowed. False: the commit is lost. */
  isWritten(): boolean {
    const log = stat(this.#logPath);
    if (!this.areThere(log) || log === undefined) return false;
    this.logBytes = Number(log.size);
    this.#isCutLog ||= this.logBytes > this.#logBytesBefore && this.#hasHole();
    return !this.#isCutLog;
  }

  /** Returns whether the paths still lead to the open files. */
  areThere(log = stat(this.#logPath)): boolean {
    return (
      this.#isWhole() && this.#logHandle !== undefined && isSame(log, this.#log) && isSame(stat(this.#indexPath), this.#index)
    );
  }

  /** Closes the database: without a checkpoint if the files at the paths are no longer the open ones. */
  close(isEnd = false): void {
    open.delete(this);
    if (open.size === 0) process.off('exit', leaveAll);
    const isSafe = this.#mayCopyBack();
    const guard = isSafe ? undefined : this.#openGuard();
    if (isSafe || guard !== undefined) this.#db.close();
    else leaked.push(this.#db);
    // The lock thread closes its own connection later, when the process ends.
    if (guard !== undefined && isEnd) leaked.push(guard);
    else guard?.close();
    if (this.#logHandle !== undefined) fs.closeSync(this.#logHandle);
    this.#logHandle = undefined;
  }

  /** Call it when the process ends without a close. Closes the database only if a close by the binding would do damage. */
  leave(): void {
    if (!this.#mayCopyBack()) this.close(true);
  }

  /** Returns whether the checkpoint that SQLite makes when it closes the database does no harm. */
  #mayCopyBack(): boolean {
    // SQLite itself makes none if the path leads to another database.
    if (!isSame(stat(this.#path), this.#database)) return true;
    // It would copy what is in the hole.
    if (this.#isCutLog) return false;
    const log = stat(this.#logPath);
    if (this.areThere(log)) return true;
    // A log that was deleted is lost with this process, unless it is copied back. The copy is right only if no process
    // has written since. A process that writes leaves a log and an index there, because this process still has its lock on the database.
    const index = stat(this.#indexPath);
    const isUnused = (log?.size ?? 0n) === 0n && ((log ?? index) === undefined || isSame(index, this.#index));
    return isUnused && this.#logHandle !== undefined && this.#isWhole();
  }

  /**
   * Returns a second connection. While it is open, the first one is not the last one, so SQLite closes it without a checkpoint. The
   * second one can only read, so it cannot make one either. Undefined: there is no such connection.
   */
  #openGuard(): Database | undefined {
    // SQLite deletes the log of an empty database when it reads it.
    if (stat(this.#path)?.size === 0n) return undefined;
    try {
      const guard = this.#driver.open(this.#path, { readOnly: true });
      try {
        // Takes the lock, even if what it reads makes no sense.
        guard.prepare('SELECT 1 FROM sqlite_schema').get();
      } catch {
        // As expected if others have overwritten the log.
      }
      return guard;
    } catch {
      return undefined;
    }
  }

  #isWhole(): boolean {
    const database = stat(this.#path);
    return isSame(database, this.#database) && database.size > 0n && !this.#isCut(database.size);
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
