// Keeps the write-ahead log short by copying it back into the database (a checkpoint).
// A checkpoint takes about 5 µs a page and an fsync. At the log length at which SQLite itself would copy, that is 25 ms in the
// middle of a commit. So the store copies as soon as no call has come for a moment, and after a commit only if that moment never
// comes. The longest of ten sweeps after a pause took 25 ms without this, and 4 ms with it.
// SQLite itself would copy inside a commit, after a fixed number of pages. The store copies right after the commit, in its own turn
// of the event loop. With jobs of ten megabytes, commit and copy in one turn blocked the event loop for twice as long.
// The log restarts from its beginning only if no process has written meanwhile. With two hot processes that is rare: the log grew
// to 75 MB in five seconds. So a process that finds the log too long, right after its own commit, locks out the other writers until
// the log restarts.
import type { Database, Statement } from '../driver/load.js';

/**
 * Checkpoints of 16 MB instead of 4 MB: 7 % more jobs per second, because the same pages are written to the database less often.
 */
const USUAL_BYTES = 16_384_000;
const TOO_MANY_PAGES = 8_000;
const LOOK_EVERY = 64;
/**
 * Fewest pages that are worth an fsync of the database while no call waits. Copying them delays a call that comes meanwhile by only
 * a few milliseconds.
 */
const IDLE_PAGES = 500;
const IDLE_MS = 20;

type Log = [busy: number, pages: number, copied: number];

export class Checkpoints {
  readonly #areFilesThere: () => boolean;
  readonly #look: Statement<Log>;
  readonly #copy: Statement<Log>;
  readonly #restart: Statement<Log>;
  #commits = 0;
  #timer: NodeJS.Timeout | undefined;
  #due: NodeJS.Immediate | undefined;

  /** `areFilesThere`: whether the open files are still at their paths. By the index of another log, a checkpoint would do damage. */
  constructor(db: Database, areFilesThere: () => boolean) {
    this.#areFilesThere = areFilesThere;
    db.exec('PRAGMA wal_autocheckpoint = 0');
    // Truncates the file when the log restarts. Otherwise the file would keep its greatest length for ever.
    db.exec('PRAGMA journal_size_limit = 16384000');
    this.#look = db.prepare('PRAGMA wal_checkpoint(NOOP)');
    this.#copy = db.prepare('PRAGMA wal_checkpoint(PASSIVE)');
    this.#restart = db.prepare('PRAGMA wal_checkpoint(RESTART)');
  }

  /**
   * `logBytes` is the size of the log file. SQLite truncates the file to the usual size with the first commit after the log
   * restarted.
   */
  afterCommit(logBytes: number): void {
    this.#commits += 1;
    if (logBytes > USUAL_BYTES) this.#due ??= setImmediate(this.#copySoon);
    if (this.#timer === undefined) this.#waitForPause();
    if (this.#commits % LOOK_EVERY === 0) this.#checkpoint(this.#restart, ([, pages]) => pages > TOO_MANY_PAGES);
  }

  stop(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#due);
  }

  readonly #copySoon = (): void => {
    this.#due = undefined;
    this.#checkpoint(this.#copy, ([, pages, copied]) => pages > copied);
  };

  /** Uses one timer for as long as commits come, because a new timer for each commit would cost more than it saves. */
  #waitForPause(): void {
    const commits = this.#commits;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#commits !== commits) this.#waitForPause();
      else this.#checkpoint(this.#copy, ([, pages, copied]) => pages - copied >= IDLE_PAGES);
    }, IDLE_MS).unref();
  }

  #checkpoint(how: Statement<Log>, isDue: (log: Log) => boolean): void {
    try {
      if (isDue(this.#look.get() ?? [0, 0, 0]) && this.#areFilesThere()) how.get();
    } catch {
      // The database is busy or the disk has an error. The next commit reports the error; until then the log is only longer than
      // usual.
    }
  }
}
