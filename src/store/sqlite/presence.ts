// The crash hint. A process that opens sessions holds an exclusive lock on a small file of its own for as long as it lives, and the
// kernel drops that lock when the process dies, however it dies. Whoever gets the lock knows that the owner is gone.
// The files are empty SQLite databases: an open exclusive transaction is the one lock that this engine has on every platform.
// POSIX locks belong to the process and vanish when any copy of SQLite in it closes the file, so nobody may ever touch a file of
// their own process: names begin with a mark of the process.
import fs from 'node:fs';
import type { Database, Driver, Statement } from './driver.js';
import { PresenceFolder } from './presence-folder.js';

const CLEANED_AT_ONCE = 100;

export interface Presence {
  /** Name of the file, which sessions record. */
  name: string;
  release(): void;
}

interface Held {
  name: string;
  db: Database;
  users: number;
}

/** One file per thread and store, shared by all that open sessions there. */
const held = new Map<string, Held>();

/** Throws CRASH_HINTS_OFF where the file cannot be made: sessions then live without the hint. */
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
    // First the file, then the lock: a lock that another process gets without its file is no sign of a death.
    folder.remove(entry.name);
    entry.db.close();
    folder.remove(entry.name);
  };
  return { name: entry.name, release };
}

function hold(driver: Driver, folder: PresenceFolder): Held {
  folder.make();
  // More than one try: a cleaner may take the file for an orphan between its creation and its lock.
  for (let triesLeft = 2; ; triesLeft -= 1) {
    const name = folder.create(threadMark());
    let db: Database | undefined;
    try {
      db = driver.open(folder.pathOf(name), { mustExist: true });
      // Without the journal file that SQLite would put beside it.
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

/** What this process knows of the others. */
export class Peers {
  readonly #driver: Driver;
  readonly #folder: PresenceFolder;
  /** Open files of those that were alive at the last look: asking again costs 15 µs, opening 150 µs. */
  readonly #living = new Map<string, Peer>();
  readonly #dead = new Set<string>();

  constructor(driver: Driver, storePath: string) {
    this.#driver = driver;
    this.#folder = new PresenceFolder(storePath);
  }

  /** Those of the named ones that are surely gone. Sessions must name them: a file is named only after its owner has locked it. */
  dead(names: string[]): string[] {
    for (const [name, { db }] of this.#living) {
      if (names.includes(name)) continue;
      db.close();
      this.#living.delete(name);
    }
    // Looked at again under the lock, for an owner that closes properly unlinks first.
    const died = (name: string): boolean => isOfEndedThread(name) || (this.#locked(name, () => this.#folder.has(name)) ?? false);
    for (const name of names) if (!this.#dead.has(name) && died(name)) this.#dead.add(name);
    return names.filter((name) => this.#dead.has(name));
  }

  /** Removes the files of the dead that no session names any more. */
  clean(isNamed: (name: string) => boolean): void {
    for (const name of this.#dead) {
      if (isNamed(name)) continue;
      this.#folder.remove(name);
      this.#dead.delete(name);
    }
  }

  /** Removes what the dead left when nobody was there to see them die; under the lock, or it might be of one who is just being born. */
  cleanOrphans(isNamed: (name: string) => boolean): void {
    for (const name of this.#folder.list().slice(0, CLEANED_AT_ONCE)) {
      if (isNamed(name)) continue;
      if (isOfEndedThread(name)) this.#folder.remove(name);
      // Asked again under the lock: its owner may have opened a session and died in between.
      this.#locked(name, () => void (isNamed(name) || this.#folder.remove(name)));
    }
    this.close();
  }

  close(): void {
    this.dead([]);
  }

  /** Does something under the lock of a file. Undefined: its owner lives, or nothing can be told. */
  #locked<T>(name: string, act: () => T): T | undefined {
    if (name.startsWith(`${processMark()}-`) || !this.#folder.has(name)) return undefined;
    try {
      const peer = this.#living.get(name) ?? this.#open(name);
      peer.begin.run();
      try {
        // A shared lock is enough: it is not to be had beside the exclusive one, nor the exclusive one beside it.
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

/** That of the process, and on Linux the kernel's number of this thread. */
function threadMark(): string {
  try {
    // A synchronous call: it is made by this thread.
    const thread = /\/task\/(\d+)$/.exec(fs.readlinkSync('/proc/thread-self'))?.[1];
    return thread === undefined ? processMark() : `${processMark()}-${thread}`;
  } catch {
    return processMark();
  }
}

/**
 * Whether the file belongs to a thread of this process that has ended, for instance by `terminate()`. Nothing else shows it: the lock belongs to
 * the process. A number that another thread got meanwhile says no, and the session expires as without a hint.
 */
function isOfEndedThread(name: string): boolean {
  const own = `${processMark()}-`;
  if (!name.startsWith(own)) return false;
  // A UUID has five parts.
  const [thread, ...uuid] = name.slice(own.length).split('-');
  return uuid.length === 5 && !fs.existsSync(`/proc/self/task/${thread}`);
}

/** The same in all threads of a process, and in no other process: containers that share a volume may share pids too. */
function processMark(): string {
  mark ??= `${process.pid}-${startOfProcess()}`;
  return mark;
}

function startOfProcess(): string {
  try {
    // Field 22, counted behind the name, which may contain anything.
    const stat = fs.readFileSync('/proc/self/stat', 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '0';
  } catch {
    return '0';
  }
}
