// The store's clock is the same for all processes of a host, and no step of the wall clock moves it. Its time is the host's
// monotonic clock plus an offset that the first opener after a boot writes into the file. The store judges expiry by this clock
// only.
// A process in a time namespace of Linux sees a different monotonic clock, so the store subtracts the offset of the namespace.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import type { Clock } from '../../../runtime/clock.js';
import type { Database } from '../driver/load.js';
import { sql } from '../driver/sql.js';
import { readNamespaceMs, wrongNamespace } from './time-namespace.js';

/** The moment of a transaction. `after` returns the first whole millisecond at which `ms` have passed. */
export interface Moment {
  readonly now: number;
  after(ms: number): number;
}

export class StoreClock {
  readonly #clock: Clock;
  readonly #offset: number;

  constructor(clock: Clock, offset: number) {
    this.#clock = clock;
    this.#offset = offset;
  }

  /** Returns whole milliseconds since the epoch. */
  now(): number {
    return Math.floor(this.#exact());
  }

  /** Returns the first whole millisecond at which `ms` have passed from now: never early. */
  after(ms: number): number {
    return Math.ceil(this.#exact() + ms);
  }

  /** Returns the wall clock of the host, in whole epoch ms. It follows every step, so it judges no expiry. */
  wall(): number {
    return Math.floor(this.#clock.wall());
  }

  #exact(): number {
    return this.#clock.monotonic() + this.#offset;
  }
}

/**
 * Reads the offset of this boot. The first opener after a boot writes it. If the recorded boot is another one, every session owner
 * of that boot is dead, so the same transaction ends their sessions and locks. The result is valid for the lifetime of this
 * process.
 */
export function startClock(db: Database, clock: Clock, boot = readBootId(), namespaceMs = readNamespaceMs()): StoreClock {
  const monotonic = clock.monotonic() - namespaceMs;
  const known = offsetOf(db, boot, monotonic);
  if (known !== undefined) {
    const recorded = clock.wall() - known;
    // Earlier versions ignored namespaces and used the monotonic clock that they saw. If the offset fits that clock better, refuse
    // it. The comparison uses the wall clock, which is the same in all namespaces.
    if (Math.abs(recorded - monotonic - namespaceMs) < Math.abs(recorded - monotonic)) throw wrongNamespace();
    return new StoreClock(clock, known - namespaceMs);
  }
  db.exec('BEGIN IMMEDIATE');
  try {
    let offset = offsetOf(db, boot, monotonic);
    if (offset === undefined) {
      offset = Math.max(clock.wall(), lastKnown(db) + 1) - monotonic;
      sql(db, 'set-clock', 'boot offset').run(boot, offset);
      for (const name of ['expire-sessions', 'expire-locks']) sql(db, name).run();
    }
    db.exec('COMMIT');
    return new StoreClock(clock, offset - namespaceMs);
  } catch (error) {
    if (db.inTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

function offsetOf(db: Database, boot: string, monotonic: number): number | undefined {
  const row = sql<[boot: string, offset: number]>(db, 'read-clock').get();
  if (row === undefined || row[0] !== boot) return undefined;
  // If the host has no boot id, a clock that has gone back shows a new boot. One second of slack allows for rounded times.
  return boot === UNKNOWN_BOOT && monotonic + row[1] < lastKnown(db) - 1000 ? undefined : row[1];
}

/** Returns the latest past time that the file records. */
function lastKnown(db: Database): number {
  return sql<[number]>(db, 'last-known-time').get()?.[0] ?? 0;
}

const UNKNOWN_BOOT = 'unknown';

function readBootId(): string {
  try {
    const id =
      process.platform === 'linux'
        ? fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8')
        : process.platform === 'darwin'
          ? execFileSync('sysctl', ['-n', 'kern.bootsessionuuid'], { encoding: 'utf8' })
          : '';
    if (id.trim() !== '') return id.trim();
  } catch {
    // A sandbox may hide the boot id.
  }
  return UNKNOWN_BOOT;
}
