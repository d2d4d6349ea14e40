// Notifies watchers that their queue may have changed: at once after a commit of this thread. A cheap poll finds commits of other
// threads and processes.
// Polling `data_version` takes 2 µs and no lock. Every 10 ms that was 0.9 % of a core, and an empty timer took as much. So when
// nothing has changed for a moment, the poll rests, and the file system reports the next write to the log (log-watch.ts).
import { DueCalls } from '../due-calls.js';
import type { Database, Statement } from './driver/load.js';
import { sql } from './driver/sql.js';
import { LogWatch } from './driver/log-watch.js';

const POLL_MS = 10;
/**
 * Poll interval while resting, in ms. These polls check that the files are still there, and whether the file system misses writes.
 */
const REST_POLL_MS = 1000;
/**
 * Polls without a change before the poll rests; fewer after a commit that changed no watched queue, such as a renewal. The file
 * system does not report the end of a commit, so the poll must still be awake when a commit that syncs slowly ends.
 */
const QUIET_POLLS = 100;
const QUIET_POLLS_AFTER_OTHERS = 30;
/** The file system reports the first write of a commit, which ends some time later. So check again after these times. */
const LOOK_AGAIN_AFTER_MS = [1, 1, 2, 3];
/**
 * A lone commit that changed no watched queue, such as the renewal of the lock thread every few seconds, is no reason to stay
 * awake. The poll rests again at once and checks a few more times, because another commit may have been on its way to the disk when
 * the watch began.
 */
const LONE_AFTER_MS = 1000;
/**
 * Wait this long before a new watch. It would otherwise report the writes of the lone commit that the old watch has not reported
 * yet.
 */
const REST_AFTER_LONE_MS = 2;
const LOOK_AFTER_LONE_MS = [5, 10, 20, 40, 80, 150];
const TOLD_WITHIN_MS = 100;
const CHECK_EVERY_MS = 1000;

/** All stores of this thread by path. A commit of one store wakes the watchers of the others without a poll. */
const here = new Map<string, Set<Wake>>();

export class Wake {
  readonly #path: string;
  readonly #check: () => void;
  readonly #dataVersion: Statement<[number]>;
  readonly #queueVersion: Statement<[number]>;
  readonly #listeners = new Map<string, Set<() => void>>();
  /** The version of each watched queue when another connection last changed the file. */
  readonly #versions = new Map<string, number>();
  readonly #due = new DueCalls();
  readonly #log: LogWatch;
  #seen = 0;
  #uncheckedMs = 0;
  /** Polls without a change that are left before the poll rests. */
  #pollsLeft = QUIET_POLLS;
  #rousedAt = Number.NEGATIVE_INFINITY;
  /** True if nothing was written for a while before the write that ended the rest. */
  #isLone = false;
  #timer: NodeJS.Timeout | undefined;
  #again: NodeJS.Timeout | undefined;

  constructor(db: Database, path: string, check: () => void) {
    this.#path = path;
    this.#check = check;
    this.#dataVersion = db.prepare('PRAGMA data_version');
    this.#queueVersion = sql(db, 'queue-version', 'name');
    this.#log = new LogWatch(`${path}-wal`, () => this.#rouse());
    const stores = here.get(path) ?? new Set();
    here.set(path, stores.add(this));
  }

  watch(queue: string, listener: () => void): () => void {
    // Wrap the listener, so one listener may watch twice and stop once.
    const call = (): void => listener();
    const listeners = this.#listeners.get(queue) ?? new Set();
    this.#listeners.set(queue, listeners.add(call));
    if (this.#timer === undefined) {
      this.#seen = this.#dataVersion.get()?.[0] ?? 0;
      this.#pollEvery(POLL_MS, QUIET_POLLS);
    }
    this.#versions.set(queue, this.#versionOf(queue));
    return () => {
      listeners.delete(call);
      this.#due.drop(call);
      if (listeners.size === 0) this.#listeners.delete(queue);
      if (this.#listeners.size === 0) this.#stopPolling();
    };
  }

  /** Call it after a commit. Wakes the watchers of these queues in this thread. */
  signal(queues: string[]): void {
    for (const wake of here.get(this.#path) ?? []) {
      wake.#pollsLeft = QUIET_POLLS;
      wake.#isLone = false;
      wake.#enqueue(queues);
    }
  }

  close(): void {
    this.#stopPolling();
    this.#due.stop();
    this.#listeners.clear();
    const stores = here.get(this.#path);
    stores?.delete(this);
    if (stores?.size === 0) here.delete(this.#path);
  }

  readonly #poll = (): void => {
    const isResting = this.#log.isWatching;
    this.#uncheckedMs += isResting ? REST_POLL_MS : POLL_MS;
    if (this.#uncheckedMs >= CHECK_EVERY_MS) {
      this.#uncheckedMs = 0;
      this.#check();
    }
    this.#pollsLeft -= 1;
    if (isResting) {
      if (this.#look() !== 'nothing') this.#lookAgain([TOLD_WITHIN_MS], this.#shouldBeAwake);
      return;
    }
    this.#lookAwake();
    if (this.#pollsLeft <= 0) this.#rest();
  };

  /**
   * Called some time after another connection has written. If the watch has not reported the write by now, stop trusting the watch.
   */
  readonly #shouldBeAwake = (): void => {
    if (!this.#log.isWatching) return;
    this.#log.distrust();
    this.#pollEvery(POLL_MS, QUIET_POLLS);
  };

  #lookAwake(): void {
    if (this.#look() === 'elsewhere' && this.#isLone) this.#lookAgain([REST_AFTER_LONE_MS], () => this.#restAfterLone());
  }

  #restAfterLone(): void {
    if (!this.#isLone || this.#log.isWatching) return;
    this.#rest();
    if (this.#log.isWatching) this.#lookAgain(LOOK_AFTER_LONE_MS, () => this.#look() !== 'nothing' && this.#rouse());
  }

  /** Returns what other connections have written since the last check: to a watched queue, elsewhere, or nothing. */
  #look(): 'nothing' | 'elsewhere' | 'watched' {
    try {
      const version = this.#dataVersion.get()?.[0] ?? 0;
      if (version === this.#seen) return 'nothing';
      this.#seen = version;
      const changed = [...this.#listeners.keys()].filter((queue) => this.#hasChanged(queue));
      this.#pollsLeft = changed.length > 0 ? QUIET_POLLS : QUIET_POLLS_AFTER_OTHERS;
      this.#enqueue(changed);
      if (changed.length === 0) return 'elsewhere';
      this.#isLone = false;
      return 'watched';
    } catch {
      // The database is busy or broken at the moment. Wake-ups may be lost; the watchers' own calls report the error.
      return 'nothing';
    }
  }

  #rest(): void {
    const isWatched = this.#log.watch();
    this.#pollEvery(isWatched ? REST_POLL_MS : POLL_MS, QUIET_POLLS);
    if (!isWatched) return;
    // Check again, because a write may have come before the watch began.
    if (this.#look() !== 'nothing') this.#rouse();
  }

  /** Called when the log is being written: ends the rest. */
  #rouse(): void {
    this.#log.stop();
    this.#pollEvery(POLL_MS, QUIET_POLLS);
    const time = performance.now();
    this.#isLone = time - this.#rousedAt > LONE_AFTER_MS;
    this.#rousedAt = time;
    this.#lookAgain(LOOK_AGAIN_AFTER_MS, () => this.#lookAwake());
    this.#lookAwake();
  }

  /** Calls `look` after each of these times, unless a call of `look` starts another series. */
  #lookAgain([ms, ...rest]: number[], look: () => void): void {
    clearTimeout(this.#again);
    if (ms === undefined) return;
    this.#again = setTimeout(() => {
      this.#lookAgain(rest, look);
      look();
    }, ms).unref();
  }

  #pollEvery(ms: number, quietPolls: number): void {
    clearInterval(this.#timer);
    this.#pollsLeft = quietPolls;
    this.#timer = setInterval(this.#poll, ms).unref();
  }

  #hasChanged(queue: string): boolean {
    const version = this.#versionOf(queue);
    const changed = this.#versions.get(queue) !== version;
    this.#versions.set(queue, version);
    return changed;
  }

  #versionOf(queue: string): number {
    return this.#queueVersion.get(queue)?.[0] ?? 0;
  }

  #enqueue(queues: string[]): void {
    for (const queue of queues) for (const call of this.#listeners.get(queue) ?? []) this.#due.add(call);
  }

  #stopPolling(): void {
    this.#log.stop();
    clearTimeout(this.#again);
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
