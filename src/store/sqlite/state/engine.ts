// Opens the database file and connects the parts of the SQLite store. Only connection.ts calls it.
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { HoldfastError } from '../../../errors.js';
import type { Clock } from '../../../runtime/clock.js';
import { Warnings } from '../../warnings.js';
import { Adding } from '../add.js';
import { Callers } from './callers.js';
import { Changing } from '../change.js';
import { Checkpoints } from './checkpoint.js';
import { Claiming } from '../claim.js';
import { type StoreClock, startClock } from './clock.js';
import { Committer } from './commit.js';
import { Controlling } from '../control.js';
import { type Database, type Driver, loadDriver } from '../driver/load.js';
import { Entering } from './enter.js';
import { Entries } from './entries.js';
import { blameOf, busy, toStoreError } from '../driver/errors.js';
import { EventLog } from '../events.js';
import { Failing } from './fail.js';
import { inspectFile, lastWrite } from '../driver/file.js';
import { Inspecting } from '../inspect.js';
import { Groups } from './groups.js';
import { KeyGroups } from './key-groups.js';
import type { Links } from './links.js';
import { Leaving } from '../leave.js';
import { LockWait } from './lock-wait.js';
import { Locks } from '../lock.js';
import { LostGroups } from './lost-groups.js';
import { LostLinks } from './lost-links.js';
import { MinuteCounts } from './minute-counts.js';
import { NamedLocks } from '../named-lock.js';
import { holdPresence, Peers, type Presence } from '../liveness/presence.js';
import { Probing } from '../probe.js';
import { QueueTable } from './queue-state.js';
import { ReadTurns } from './read-turns.js';
import { Retention } from '../retention.js';
import { Scheduling } from '../schedule.js';
import { Schedules } from './schedules.js';
import { Rules } from './rules.js';
import { migrate } from './schema.js';
import { Selecting } from '../select.js';
import { Sessions } from '../session.js';
import { Settling } from '../settle.js';
import { Steps } from './steps.js';
import { Sweeping } from '../sweep.js';
import { Wake } from '../wake.js';
import { Writing } from '../write.js';

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

export class Engine {
  readonly clock: StoreClock;
  readonly queues: QueueTable;
  readonly committer: Committer;
  readonly wake: Wake;
  readonly adding: Adding;
  readonly claiming: Claiming;
  readonly settling: Settling;
  readonly sessions: Sessions;
  readonly sweeping: Sweeping;
  readonly probing: Probing;
  readonly locks: Locks;
  readonly namedLocks: NamedLocks;
  readonly controlling: Controlling;
  readonly writing: Writing;
  readonly changing: Changing;
  readonly scheduling: Scheduling;
  readonly inspecting: Inspecting;
  readonly links: Links;
  readonly events: EventLog;
  readonly warnings = new Warnings();
  readonly readTurns = new ReadTurns();
  /** The name of the driver. */
  readonly driver: string;
  readonly #driver: Driver;
  /** The real path, which is the same for all processes, whichever link they used. */
  readonly #realPath: string;
  readonly #peers: Peers;
  readonly #checkpoints: Checkpoints;
  #presence: Presence | undefined;

  constructor(driver: Driver, db: Database, clock: StoreClock, { path, busyTimeoutMs }: EngineOptions) {
    this.driver = driver.name;
    this.#driver = driver;
    this.#realPath = fs.realpathSync(path);
    this.clock = clock;
    const keyGroups = new KeyGroups(db);
    const minutes = new MinuteCounts(db);
    const rules = new Rules(db);
    const groups = new Groups(db, rules);
    this.queues = new QueueTable(db, { keyGroups, groups, minutes });
    this.#checkpoints = new Checkpoints(db);
    const onCommit = (queues: string[], logBytes: number): void => {
      this.wake.signal(queues);
      this.#checkpoints.afterCommit(logBytes);
    };
    this.committer = new Committer({ db, path, clock, table: this.queues, busyTimeoutMs, onCommit });
    this.wake = new Wake(db, this.#realPath, () => this.committer.check());
    this.#peers = new Peers(driver, this.#realPath);
    const callers = new Callers(db);
    const entries = new Entries(db);
    const entering = new Entering(db, groups);
    const schedules = new Schedules(db, () => clock.wall());
    const steps = new Steps(db);
    const leaving = new Leaving(db, { entries, entering, schedules, steps });
    this.links = leaving.families.links;
    const retention = new Retention(db, leaving);
    const failing = new Failing(db, leaving, retention);
    const selecting = new Selecting(db);
    this.adding = new Adding(db, { callers, entering, entries, leaving });
    this.claiming = new Claiming(db, { callers, keyGroups, groups, leaving, schedules });
    this.settling = new Settling(db, callers, this.claiming, { leaving, retention, steps, failing });
    this.namedLocks = new NamedLocks(db);
    this.locks = new Locks(db, leaving, failing);
    this.sessions = new Sessions(db, { callers, locks: this.locks, namedLocks: this.namedLocks });
    this.sweeping = new Sweeping(db, {
      callers,
      sessions: this.sessions,
      locks: this.locks,
      namedLocks: this.namedLocks,
      entries,
      schedules,
      lostGroups: new LostGroups(db, groups),
      lostLinks: new LostLinks(db, leaving.families),
    });
    this.probing = new Probing(db, this.#peers, schedules);
    this.writing = new Writing(db, leaving, steps);
    this.changing = new Changing(db, { selecting, leaving, locks: this.locks, steps, failing });
    this.scheduling = new Scheduling(db, schedules, entering, leaving);
    this.inspecting = new Inspecting(db, { entries, schedules, minutes, groups, steps });
    this.events = new EventLog(db);
    this.controlling = new Controlling({
      events: this.events,
      callers,
      entries,
      scheduling: this.scheduling,
      minutes,
      groups,
      rules,
    });
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
