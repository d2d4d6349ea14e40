// Tells watchers that their queue may have changed: at once after a commit of this thread, and by a cheap check after those of others.
// Polling `data_version` takes 2 µs and no lock. Every 10 ms that was 0.9 % of a core, and an empty timer took as much. Watching the
// WAL file with fs.watch took 0.24 % while nothing happened, but it wakes a busy process for every commit of its own, and it does not
// work on every file system.
import { DueCalls } from '../due-calls.js';
import type { Database, Statement } from './driver.js';

const POLL_MS = 10;
/** How often the poll looks whether the file is still there. */
const CHECK_EVERY = 100;

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
  #seen = 0;
  #ticks = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(db: Database, path: string, check: () => void) {
    this.#path = path;
    this.#check = check;
    this.#dataVersion = db.prepare('PRAGMA data_version');
    this.#queueVersion = db.prepare('SELECT version FROM queues WHERE name = ?');
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
      this.#timer = setInterval(this.#poll, POLL_MS).unref();
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
    for (const wake of here.get(this.#path) ?? []) wake.#enqueue(queues);
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
    this.#ticks += 1;
    if (this.#ticks % CHECK_EVERY === 0) this.#check();
    try {
      const version = this.#dataVersion.get()?.[0] ?? 0;
      if (version === this.#seen) return;
      this.#seen = version;
      this.#enqueue([...this.#listeners.keys()].filter((queue) => this.#hasChanged(queue)));
    } catch {
      // Busy or broken at the moment: wake-ups may be lost, and the calls of the watchers tell what is wrong.
    }
  };

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
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
