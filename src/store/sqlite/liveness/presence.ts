// The crash hint. A process that opens sessions holds an exclusive lock on its own small file for as long as it lives. The kernel
// drops that lock when the process dies, however it dies. So a process that gets the lock knows that the owner is dead.
// The files are empty SQLite databases, because an open exclusive transaction is the one lock that this engine has on every
// platform.
// POSIX locks belong to the process, and vanish when any copy of SQLite in the process closes the file. So a process must never
// open its own presence file again. It recognises its own files by the mark at the start of their names.
import fs from 'node:fs';
import type { Database, Driver, Statement } from '../driver/load.js';
import { PresenceFolder } from './presence-folder.js';

const CLEANED_AT_ONCE = 100;

export interface Presence {
  /** Name of the file. Sessions record it. */
  name: string;
  release(): void;
}

interface Held {
  name: string;
  db: Database;
  users: number;
}

/** One file per thread and store, shared by all connections of the thread that open sessions. */
const held = new Map<string, Held>();

/**
 * Locks the presence file of this thread. Throws CRASH_HINTS_OFF if the file cannot be created; sessions then live without the
 * hint.
 */
export function holdPresence(driver: Driver, storePath: string): Presence {
  const folder = new PresenceFolder(storePath);
  const entry = held.get(storePath) ?? hold(driver, folder);
  held.set(storePath, entry);
  entry.users += 1;
  let released = false;
  const release = (): void => {
    if (released) return;
    released = true;
    entry.users -= 1;
    if (entry.users > 0) return;
    held.delete(storePath);
    // Delete the file before releasing the lock: a lock without its file does not mean that the owner died.
    folder.remove(entry.name);
    entry.db.close();
    folder.remove(entry.name);
  };
  return { name: entry.name, release };
}

function hold(driver: Driver, folder: PresenceFolder): Held {
  folder.make();
  // Retry, because another process may delete the file as an orphan between its creation and its lock.
  for (let triesLeft = 2; ; triesLeft -= 1) {
    const name = folder.create(threadMark());
    let db: Database | undefined;
    try {
      db = driver.open(folder.pathOf(name), { mustExist: true });
      // MEMORY: SQLite would otherwise create a journal file beside the presence file.
      db.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
      if (folder.has(name)) return { name, db, users: 0 };
      throw new Error('its file was removed');
    } catch (error) {
      db?.close();
      folder.remove(name);
      if (triesLeft === 0) throw folder.off(`holds a file that cannot be locked (${(error as Error).message})`, error);
    }
  }
}

interface Peer {
  db: Database;
  begin: Statement;
  look: Statement;
  end: Statement;
}

/** The presence files of other processes, as far as this process knows them. */
export class Peers {
  readonly #driver: Driver;
  readonly #folder: PresenceFolder;
  /** Open files of processes that were alive at the last check. Asking again costs 15 µs, opening 150 µs. */
  readonly #living = new Map<string, Peer>();
  readonly #dead = new Set<string>();

  constructor(driver: Driver, storePath: string) {
    this.#driver = driver;
    this.#folder = new PresenceFolder(storePath);
  }

  /**
   * Returns the named files whose owners are certainly dead. Pass only names that sessions recorded, because an owner locks its
   * file before a session records the name.
   */
  dead(names: string[]): string[] {
    for (const [name, { db }] of this.#living) {
      if (names.includes(name)) continue;
      db.close();
      this.#living.delete(name);
    }
    // Check the file again under the lock, because an owner that closes properly deletes its file first.
    const died = (name: string): boolean => isOfEndedThread(name) || (this.#locked(name, () => this.#folder.has(name)) ?? false);
    for (const name of names) if (!this.#dead.has(name) && died(name)) this.#dead.add(name);
    return names.filter((name) => this.#dead.has(name));
  }

  /** Deletes the files of dead owners that no session names any more. */
  clean(isNamed: (name: string) => boolean): void {
    for (const name of this.#dead) {
      if (isNamed(name)) continue;
      this.#folder.remove(name);
      this.#dead.delete(name);
    }
  }

  /**
   * Deletes the files of owners that died unnoticed. It holds the lock of each file, because the file might belong to a process
   * that is just starting.
   */
  cleanOrphans(isNamed: (name: string) => boolean): void {
    for (const name of this.#folder.list().slice(0, CLEANED_AT_ONCE)) {
      if (isNamed(name)) continue;
      if (isOfEndedThread(name)) this.#folder.remove(name);
      // Ask again under the lock, because the owner may have opened a session and died in between.
      this.#locked(name, () => void (isNamed(name) || this.#folder.remove(name)));
    }
    this.close();
  }

  close(): void {
    this.dead([]);
  }

  /** Calls `act` under the lock of a file. Undefined: the owner is alive, or its state is unknown. */
  #locked<T>(name: string, act: () => T): T | undefined {
    if (name.startsWith(`${processMark()}-`) || !this.#folder.has(name)) return undefined;
    try {
      const peer = this.#living.get(name) ?? this.#open(name);
      peer.begin.run();
      try {
        // A shared lock is enough: it excludes the exclusive lock, and the exclusive lock excludes it.
        peer.look.get();
        return act();
      } finally {
        peer.end.run();
      }
    } catch {
      return undefined;
    }
  }

  #open(name: string): Peer {
    const db = this.#driver.open(this.#folder.pathOf(name), { mustExist: true });
    const peer: Peer = {
      db,
      begin: db.prepare('BEGIN'),
      look: db.prepare('SELECT 1 FROM sqlite_schema'),
      end: db.prepare('ROLLBACK'),
    };
    this.#living.set(name, peer);
    return peer;
  }
}

let mark: string | undefined;

/** Returns the mark of the process and, on Linux, the kernel's number of this thread. */
function threadMark(): string {
  try {
    // The call is synchronous, so this thread makes it.
    const thread = /\/task\/(\d+)$/.exec(fs.readlinkSync('/proc/thread-self'))?.[1];
    return thread === undefined ? processMark() : `${processMark()}-${thread}`;
  } catch {
    return processMark();
  }
}

/**
 * Returns whether the file belongs to a thread of this process that has ended, for instance by `terminate()`. Nothing else shows
 * that, because the lock belongs to the process. If another thread has got the number meanwhile, it returns false, and the session
 * expires without a hint.
 */
function isOfEndedThread(name: string): boolean {
  const own = `${processMark()}-`;
  if (!name.startsWith(own)) return false;
  // A UUID has five parts.
  const [thread, ...uuid] = name.slice(own.length).split('-');
  return uuid.length === 5 && !fs.existsSync(`/proc/self/task/${thread}`);
}

/**
 * Returns a mark that is the same in all threads of a process and different in every other process. The pid alone is not enough,
 * because containers that share a volume may have equal pids.
 */
function processMark(): string {
  mark ??= `${process.pid}-${startOfProcess()}`;
  return mark;
}

function startOfProcess(): string {
  try {
    // Field 22 of the file, counted from behind the program's name, which may contain any character.
    const stat = fs.readFileSync('/proc/self/stat', 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '0';
  } catch {
    return '0';
  }
}
