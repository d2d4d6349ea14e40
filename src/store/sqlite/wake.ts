// Tells watchers that their queue may have changed: at once after a commit of this thread, and by a cheap check after those of others.
// Polling `data_version` takes 2 µs and no lock. Every 10 ms that was 0.9 % of a core, and an empty timer took as much. So when nothing has
// happened for a moment, the poll rests, and the file system tells of the next write to the log (log-watch.ts).
import { DueCalls } from '../due-calls.js';
import type { Database, Statement } from './driver.js';
import { LogWatch } from './log-watch.js';

const POLL_MS = 10;
/** While it rests: for the look whether the files are still there, and to find out that the file system tells nothing. */
const REST_POLL_MS = 500;
/**
 * Polls without a change before it rests, and after a commit that changed no watched queue, such as a renewal. The file system does not tell of
 * the end of a commit: one that is slow to sync must not find everybody at rest.
 */
const QUIET_POLLS = 100;
const QUIET_POLLS_AFTER_OTHERS = 30;
/** The file system tells of the first write of a commit, which ends some time later. */
const LOOK_AGAIN_AFTER_MS = [1, 1, 2, 3];
const TOLD_WITHIN_MS = 100;
const CHECK_EVERY_MS = 1000;

/** All stores of this thread by path: a commit of one wakes the watchers of the others without a poll. */
const here = new Map<string, Set<Wake>>();

export class Wake {
  readonly #path: string;
  readonly #check: () => void;
  readonly #dataVersion: Statement<[number]>;
  readonly #queueVersion: Statement<[number]>;
  readonly #listeners = new Map<string, Set<() => void>>();
  /** Of each watched queue, when somebody else last changed the file. */
  readonly #versions = new Map<string, number>();
  readonly #due = new DueCalls();
  readonly #log: LogWatch;
  #seen = 0;
  #uncheckedMs = 0;
  /** How many more polls without a change before it rests. */
  #pollsLeft = QUIET_POLLS;
  #timer: NodeJS.Timeout | undefined;
  #again: NodeJS.Timeout | undefined;

  constructor(db: Database, path: string, check: () => void) {
    this.#path = path;
    this.#check = check;
    this.#dataVersion = db.prepare('PRAGMA data_version');
    this.#queueVersion = db.prepare('SELECT version FROM queues WHERE name = ?');
    this.#log = new LogWatch(`${path}-wal`, () => this.#rouse());
    const stores = here.get(path) ?? new Set();
    here.set(path, stores.add(this));
  }

  watch(queue: string, listener: () => void): () => void {
    // A function of its own, so that one listener may watch twice and stop once.
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

  /** After a commit: wakes whoever watches these queues in this thread. */
  signal(queues: string[]): void {
    for (const wake of here.get(this.#path) ?? []) {
      wake.#pollsLeft = QUIET_POLLS;
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
    const othersWrote = this.#look();
    if (isResting && othersWrote) this.#again = setTimeout(this.#shouldBeAwake, TOLD_WITHIN_MS).unref();
    else if (!isResting && this.#pollsLeft <= 0) this.#rest();
  };

  /** Others have written, and the file system must have told of it by now. */
  readonly #shouldBeAwake = (): void => {
    if (!this.#log.isWatching) return;
    this.#log.distrust();
    this.#pollEvery(POLL_MS, QUIET_POLLS);
  };

  /** Whether others have written since the last look. */
  #look(): boolean {
    try {
      const version = this.#dataVersion.get()?.[0] ?? 0;
      if (version === this.#seen) return false;
      this.#seen = version;
      const changed = [...this.#listeners.keys()].filter((queue) => this.#hasChanged(queue));
      this.#pollsLeft = changed.length > 0 ? QUIET_POLLS : QUIET_POLLS_AFTER_OTHERS;
      this.#enqueue(changed);
      return true;
    } catch {
      // Busy or broken at the moment: wake-ups may be lost, and the calls of the watchers tell what is wrong.
      return false;
    }
  }

  #rest(): void {
    const isWatched = this.#log.watch();
    this.#pollEvery(isWatched ? REST_POLL_MS : POLL_MS, QUIET_POLLS);
    if (!isWatched) return;
    // Something may have been written before the file was watched.
    if (this.#look()) this.#rouse();
  }

  /** The log is being written. */
  #rouse(): void {
    this.#log.stop();
    this.#pollEvery(POLL_MS, QUIET_POLLS);
    this.#look();
    this.#lookAgain(0);
  }

  #lookAgain(time: number): void {
    const ms = LOOK_AGAIN_AFTER_MS[time];
    if (ms === undefined) return;
    clearTimeout(this.#again);
    this.#again = setTimeout(() => {
      this.#look();
      this.#lookAgain(time + 1);
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
