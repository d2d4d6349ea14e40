// The store's clock: one for all processes of a host, which no step of the wall clock moves. Its time is the host's monotonic clock
// plus an offset that the first opener after a boot writes into the file. Expiry is only ever judged on it.
// A process in a time namespace of Linux sees another monotonic clock than the host: what the namespace adds is taken off again.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import type { Clock } from '../../runtime/clock.js';
import type { Database } from './driver.js';
import { readNamespaceMs, wrongNamespace } from './time-namespace.js';

export class StoreClock {
  readonly #clock: Clock;
  readonly #offset: number;

  constructor(clock: Clock, offset: number) {
    this.#clock = clock;
    this.#offset = offset;
  }

  /** Whole milliseconds since the epoch. */
  now(): number {
    return Math.floor(this.#exact());
  }

  /** The first whole millisecond at which `ms` have passed from now: never early. */
  after(ms: number): number {
    return Math.ceil(this.#exact() + ms);
  }

  #exact(): number {
    return this.#clock.monotonic() + this.#offset;
  }
}

/** SQL: a column of milliseconds, rounded up. The SQLite of Deno has no ceil(). */
export function roundedUp(column: string): string {
  return `CAST(${column} AS INTEGER) + (${column} > CAST(${column} AS INTEGER))`;
}

/**
 * Reads the offset of this boot or, as its first opener, writes it. A boot that is not the recorded one means that every owner of
 * then is dead, so their sessions and locks end in the same transaction. The result holds for as long as the process lives.
 */
export function startClock(db: Database, clock: Clock, boot = readBootId(), namespaceMs = readNamespaceMs()): StoreClock {
  const monotonic = clock.monotonic() - namespaceMs;
  const known = offsetOf(db, boot, monotonic);
  if (known !== undefined) {
    const recorded = clock.wall() - known;
    // Versions that knew nothing of namespaces counted on the clock that they saw. The wall clock is the same in all of them.
    if (Math.abs(recorded - monotonic - namespaceMs) < Math.abs(recorded - monotonic)) throw wrongNamespace();
    return new StoreClock(clock, known - namespaceMs);
  }
  db.exec('BEGIN IMMEDIATE');
  try {
    let offset = offsetOf(db, boot, monotonic);
    if (offset === undefined) {
      offset = Math.max(clock.wall(), lastKnown(db) + 1) - monotonic;
      db.prepare('INSERT OR REPLACE INTO clock (only, boot, offset) VALUES (1, ?, ?)').run(boot, offset);
      db.exec('UPDATE sessions SET expiresAt = 0 WHERE reaped < 2; UPDATE jobs SET endsAt = 0 WHERE endsAt IS NOT NULL');
    }
    db.exec('COMMIT');
    return new StoreClock(clock, offset - namespaceMs);
  } catch (error) {
    if (db.inTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

function offsetOf(db: Database, boot: string, monotonic: number): number | undefined {
  const row = db.prepare<[boot: string, offset: number]>('SELECT boot, offset FROM clock').get();
  if (row === undefined || row[0] !== boot) return undefined;
  // Where the host does not tell its boots apart, a clock that has gone back does. A second of slack, for times were rounded.
  return boot === UNKNOWN_BOOT && monotonic + row[1] < lastKnown(db) - 1000 ? undefined : row[1];
}

/** The latest time that anything in the file speaks of as past. */
function lastKnown(db: Database): number {
  const sql =
    'SELECT max((SELECT ifnull(max(touchedAt), 0) FROM queues), (SELECT ifnull(max(expiresAt - durationMs), 0) FROM sessions))';
  return db.prepare<[number]>(sql).get()?.[0] ?? 0;
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
    // A sandbox may hide it.
  }
  return UNKNOWN_BOOT;
}
