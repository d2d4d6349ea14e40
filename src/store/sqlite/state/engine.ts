// Opens the database file and connects the parts of the SQLite store. Only connection.ts calls it.
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { HoldfastError } from '../../../errors.js';
import type { Clock } from '../../../runtime/clock.js';
import { Warnings } from '../../warnings.js';
import { Checkpoints } from './checkpoint.js';
import { type StoreClock, startClock } from './clock.js';
import { Committer } from './commit.js';
import { type Database, type Driver, loadDriver } from '../driver/load.js';
import { blameOf, busy, toStoreError } from '../driver/errors.js';
import { inspectFile, lastWrite } from '../driver/file.js';
import { LockWait } from './lock-wait.js';
import { holdPresence, Peers, type Presence } from '../liveness/presence.js';
import { Probing } from '../probe.js';
import { Guests } from './guests.js';
import { Parts } from './parts.js';
import { ReadPacer } from './read-pacer.js';
import { migrate } from './schema.js';
import { Wake } from '../wake.js';

export interface EngineOptions {
  path: string;
  clock: Clock;
  synchronous: 'full' | 'normal';
  busyTimeoutMs: number;
}

const SYNCHRONOUS = { full: 'PRAGMA synchronous = FULL', normal: 'PRAGMA synchronous = NORMAL' } as const;

export async function startEngine(options: EngineOptions): Promise<Engine> {
  const driver = await loadDriver();
  const wait = new LockWait();
  for (;;) {
    inspectFile(options.path);
    const db = driver.open(options.path);
    try {
      migrate(db, options.path);
      useWal(db, options.path);
      db.exec(SYNCHRONOUS[options.synchronous]);
      db.exec('PRAGMA temp_store = MEMORY');
      return new Engine(driver, db, startClock(db, options.clock), options);
    } catch (error) {
      db.close();
      if (blameOf(error) !== 'busy') throw error;
      if (performance.now() > wait.since(lastWrite(options.path)) + options.busyTimeoutMs) throw busy(options.path, error);
    }
    // Other processes are starting too, or a foreign program holds the file.
    await sleep(2 + Math.random() * 10);
  }
}

/**
 * Turns on the write-ahead log. If processes cannot share memory (network drives), SQLite silently stays in another mode, in which
 * readers block writers.
 */
function useWal(db: Database, path: string): void {
  const [mode] = db.prepare<[string]>('PRAGMA journal_mode = WAL').get() ?? [];
  if (mode === 'wal') return;
  throw new HoldfastError(
    'STORE_UNAVAILABLE',
    `The SQLite store ${path} lies on a file system on which SQLite cannot use its write-ahead log. Put it on a local disk.`,
    { store: 'sqlite' },
  );
}

export class Engine extends Parts {
  readonly committer: Committer;
  readonly guests: Guests;
  readonly wake: Wake;
  readonly probing: Probing;
  readonly warnings = new Warnings();
  readonly readPacer = new ReadPacer();
  /** The name of the driver. */
  readonly driver: string;
  readonly #driver: Driver;
  /** The real path, which is the same for all processes, whichever link they used. */
  readonly #realPath: string;
  readonly #peers: Peers;
  readonly #checkpoints: Checkpoints;
  #presence: Presence | undefined;

  constructor(driver: Driver, db: Database, clock: StoreClock, { path, busyTimeoutMs }: EngineOptions) {
    super(db, clock);
    this.driver = driver.name;
    this.#driver = driver;
    this.#realPath = fs.realpathSync(path);
    this.#checkpoints = new Checkpoints(db, () => this.committer.check());
    const onCommit = (queues: string[], logBytes: number): void => {
      this.wake.signal(queues);
      this.#checkpoints.afterCommit(logBytes);
    };
    this.committer = new Committer({ driver, db, path, clock, table: this.queues, busyTimeoutMs, onCommit });
    this.guests = new Guests({ driver, path: this.#realPath, clock, committer: this.committer });
    this.wake = new Wake(db, this.#realPath, () => this.committer.check());
    this.#peers = new Peers(driver, this.#realPath);
    this.probing = new Probing(db, this.#peers, this.schedules);
  }

  /**
   * Returns the name of this process's presence file, which is locked from the first session on. Undefined: sessions live without
   * crash hints, and a warning gives the reason.
   */
  presence(): string | undefined {
    try {
      this.#presence ??= this.#holdPresence();
    } catch (error) {
      this.warnings.setOnce(toStoreError(error, this.#realPath));
    }
    return this.#presence?.name;
  }

  #holdPresence(): Presence {
    const presence = holdPresence(this.#driver, this.#realPath);
    this.warnings.set([]);
    this.probing.cleanOrphans();
    return presence;
  }

  close(): void {
    this.#checkpoints.stop();
    this.wake.close();
    this.#peers.close();
    this.#presence?.release();
    this.committer.close();
  }
}
