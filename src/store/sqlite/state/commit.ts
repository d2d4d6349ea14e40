// Group commit: all operations of one turn of the event loop share one transaction and one fsync, in the order of their calls.
// An operation is synchronous and changes only the transaction, so the committer can roll back a batch and run it again. It
// resolves the promises after the commit.
import type { HoldfastError } from '../../../errors.js';
import type { StoreClock } from './clock.js';
import type { Database, Driver, Statement } from '../driver/load.js';
import { blameOf, busy, isCutLog, toStoreError } from '../driver/errors.js';
import { gone } from '../driver/file.js';
import { OpenFiles } from '../driver/open-files.js';
import { LockWait } from './lock-wait.js';
import type { QueueState, QueueTable } from './queue-state.js';
import { Transaction } from './transaction.js';
import { WriteLock } from './write-lock.js';

export interface WriteOptions<T> {
  /** Returns the result without the write lock if there is nothing to write; otherwise undefined. */
  look?: () => T | undefined;
  /** Estimated bytes that the operation writes, where they can be many. Default 0. */
  bytes?: number;
}

interface Pending extends WriteOptions<unknown> {
  run(transaction: Transaction): unknown;
  since: number;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

export interface CommitterOptions {
  driver: Driver;
  db: Database;
  path: string;
  clock: StoreClock;
  table: QueueTable;
  busyTimeoutMs: number;
  /** Called after each commit with the queues that changed and the size of the log in bytes. */
  onCommit(queues: string[], logBytes: number): void;
}

/**
 * How long the operations of one transaction may take. The rest of the turn goes into the next one, because other processes wait
 * for the write lock.
 */
const MAX_BATCH_MS = 10;
/**
 * The same limit in bytes, because writing and syncing many bytes takes longer than the statements. A single operation may exceed
 * it.
 */
const MAX_BATCH_BYTES = 4 * 1024 * 1024;

export class Committer {
  readonly #options: CommitterOptions;
  readonly #lock: WriteLock;
  readonly #commit: Statement;
  readonly #rollback: Statement;
  readonly #files: OpenFiles;
  #pending: Pending[] = [];
  #scheduled = false;
  /**
   * Rows of queues as the last commit of this process left them. Valid for the next transaction unless another connection has
   * written since.
   */
  #known: Map<string, QueueState> | undefined;
  /** When this batch first found the write lock taken. */
  #waitingSince: number | undefined;
  readonly #lockWait = new LockWait();
  #gone = false;

  constructor(options: CommitterOptions) {
    this.#options = options;
    this.#lock = new WriteLock(options.db);
    this.#commit = options.db.prepare('COMMIT');
    this.#rollback = options.db.prepare('ROLLBACK');
    this.#files = new OpenFiles(options.path, options.db, options.driver);
  }

  /** Runs an operation in the next transaction. */
  write<T>(run: (transaction: Transaction) => T, options: WriteOptions<T> = {}): Promise<T> {
    if (this.#gone) return Promise.reject(gone(this.#options.path));
    return new Promise<T>((resolve, reject) => {
      const since = performance.now();
      this.#pending.push({ ...options, run, since, resolve: resolve as (value: unknown) => void, reject });
      this.#schedule();
    });
  }

  /** Closes the database. Called after everything else that uses the database has stopped. */
  close(): void {
    this.#files.close();
  }

  /** Returns whether the path still leads to the open files. */
  check(): boolean {
    return this.#isStill(this.#files.areThere());
  }

  /** Returns the Holdfast error for an error of SQLite. */
  explain(error: unknown): HoldfastError {
    const { path } = this.#options;
    return this.#isStill(!isCutLog(error)) && this.check() ? toStoreError(error, path) : gone(path);
  }

  /** Records that the files are gone, and rejects all pending operations. Once gone, the store stays gone. */
  #isStill(there: boolean): boolean {
    if (!there && !this.#gone) {
      this.#gone = true;
      this.#rejectAll(gone(this.#options.path));
    }
    return !this.#gone;
  }

  #schedule(afterMs?: number): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    if (afterMs === undefined) setImmediate(this.#flush);
    else setTimeout(this.#flush, afterMs);
  }

  readonly #flush = (): void => {
    this.#scheduled = false;
    try {
      this.#answerByLooking();
      if (this.#pending.length > 0) this.#writeBatch();
    } catch (error) {
      this.#recover(error);
    }
    if (this.#pending.length > 0) this.#schedule();
  };

  /**
   * Resolves operations from the front without a write, until one must write. The later ones wait, because they must see what it
   * writes.
   */
  #answerByLooking(): void {
    for (let next = this.#pending[0]; next !== undefined; next = this.#pending[0]) {
      try {
        const answer = next.look?.();
        if (answer === undefined) return;
        next.resolve(answer);
      } catch (error) {
        if (blameOf(error) !== 'operation') throw error;
        next.reject(toStoreError(error, this.#options.path));
      }
      this.#pending.shift();
    }
  }

  #writeBatch(): void {
    const waitedMs = this.#waitingSince === undefined ? 0 : performance.now() - this.#waitingSince;
    if (!this.#lock.tryBegin(waitedMs)) {
      this.#waitForLock();
      return;
    }
    this.#waitingSince = undefined;
    this.#lockWait.reset();
    if (!this.#isStill(this.#files.mayWrite())) {
      this.#rollback.run();
      return;
    }
    const { clock, table, path, onCommit } = this.#options;
    const transaction = new Transaction(clock, table, this.#lock.othersWrote ? undefined : this.#known);
    this.#known = undefined;
    const end = performance.now() + MAX_BATCH_MS;
    const answers: unknown[] = [];
    let bytes = 0;
    for (const operation of this.#pending) {
      bytes += operation.bytes ?? 0;
      if (bytes > MAX_BATCH_BYTES && answers.length > 0) break;
      try {
        answers.push(operation.run(transaction));
      } catch (error) {
        if (blameOf(error) !== 'operation') throw error;
        // No operation has its own savepoint, because the common case would pay for it. Instead the rest of the batch runs again
        // without this operation.
        this.#rollback.run();
        this.#pending.splice(answers.length, 1);
        operation.reject(toStoreError(error, path));
        return;
      }
      if (performance.now() > end) break;
    }
    const changed = transaction.save();
    this.#commit.run();
    this.#known = transaction.saved;
    this.#lock.released();
    // Check before callers get their replies: a commit into a file that was unlinked meanwhile is lost.
    if (!this.#isStill(this.#files.isWritten())) return;
    this.#pending.splice(0, answers.length).forEach((operation, index) => {
      operation.resolve(answers[index]);
    });
    onCommit(changed, this.#files.logBytes);
  }

  #waitForLock(): void {
    const now = performance.now();
    this.#waitingSince ??= now;
    const { busyTimeoutMs, path } = this.#options;
    const takenSince = this.#lockWait.since(this.#progress());
    // An operation that came before the lock was found taken has not waited for the lock: the event loop may have been blocked.
    const mayWait = ({ since }: Pending): boolean => Math.max(since, takenSince) + busyTimeoutMs > now;
    for (const operation of this.#pending.filter((operation) => !mayWait(operation))) operation.reject(busy(path));
    this.#pending = this.#pending.filter(mayWait);
    if (this.#pending.length > 0) this.#schedule(1 + Math.random());
    else this.#waitingSince = undefined;
  }

  #progress(): number {
    try {
      return this.#lock.version();
    } catch {
      // A process that recovers the log after a crash locks out readers too.
      return -1;
    }
  }

  /**
   * Handles an error that no single operation caused: retries when the lock is taken, otherwise rejects all pending operations.
   * Rolls back, so the connection is ready for the next try.
   */
  #recover(error: unknown): void {
    if (this.#options.db.inTransaction) this.#rollback.run();
    if (blameOf(error) === 'busy') this.#waitForLock();
    else this.#rejectAll(this.explain(error));
  }

  #rejectAll(error: Error): void {
    for (const operation of this.#pending.splice(0)) operation.reject(error);
  }
}
