// Keeps the write-ahead log short. Copying it back into the database takes about 5 µs a page and an fsync, 25 ms for what SQLite lets
// come together, in the middle of a commit. So it is done as soon as nobody has called for a moment, and in a commit only where that moment
// never comes: the longest of ten sweeps after a pause took 25 ms without, and 4 ms with it.
// SQLite itself would copy inside of a commit, after every so many pages. Here that is done right after the commit, in a turn of the loop of
// its own: with jobs of ten megabytes, both of them together blocked the loop for twice as long.
// The log begins anew only when nobody has written meanwhile: with two hot processes that is rarely so, and it grew to 75 MB in five
// seconds. So whoever finds it too long, right after a commit of its own, keeps the others out for the moment that it takes.
import type { Database, Statement } from './driver.js';

/** Checkpoints of 16 MB instead of 4 MB: 7 % more jobs per second, for the same pages are written to the database less often. */
const USUAL_BYTES = 4_000 * 4096;
const TOO_MANY_PAGES = 8_000;
const LOOK_EVERY = 64;
/** Worth an fsync of the database in a moment in which nobody waits, and no more than a few milliseconds should somebody come. */
const IDLE_PAGES = 500;
const IDLE_MS = 20;

type Log = [busy: number, pages: number, copied: number];

export class Checkpoints {
  readonly #look: Statement<Log>;
  readonly #copy: Statement<Log>;
  readonly #restart: Statement<Log>;
  #commits = 0;
  #timer: NodeJS.Timeout | undefined;
  #due: NodeJS.Immediate | undefined;

  constructor(db: Database) {
    db.exec('PRAGMA wal_autocheckpoint = 0');
    // The file is cut when the log begins anew, or it would stay as long as it ever was.
    db.exec(`PRAGMA journal_size_limit = ${USUAL_BYTES}`);
    this.#look = db.prepare('PRAGMA wal_checkpoint(NOOP)');
    this.#copy = db.prepare('PRAGMA wal_checkpoint(PASSIVE)');
    this.#restart = db.prepare('PRAGMA wal_checkpoint(RESTART)');
  }

  /** `logBytes`: of the file, which is cut to the usual size with the first commit after the log began anew. */
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

  /** One timer for as long as commits come: setting it anew for each of them would cost more than it saves. */
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
      if (isDue(this.#look.get() ?? [0, 0, 0])) how.get();
    } catch {
      // Busy, or a disk in trouble: the next commit tells, and the log is only longer than it should be.
    }
  }
}
