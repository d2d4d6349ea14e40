// The SQLite store as the server of a run: the real engine on a real file in memory, with a connection of its own for every connection of
// the run, so that each of them finds that others have written in between. What it knows of the world is simulated: the clock, timers, and the
// kernel that drops the lock of a presence file when its process dies. A commit cannot be torn apart: calls are carried out one by one.
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EPOCH_MS } from '../host-clock.mjs';
import { Realm } from '../realm.mjs';

const nodeRequire = createRequire(import.meta.url);
/** Stands for one that never fires: all connections are in one realm, and commits of one tell the watchers of the others. */
const NO_POLL = { ref: () => NO_POLL, unref: () => NO_POLL };

/** Of runs that have not come to their end: somebody may end the program. */
const folders = new Set();
process.on('exit', () => folders.forEach(removed));

export class SqliteEngine {
  store;
  time;
  served;
  #SqliteStore;
  #options;
  #folder = mkdtempSync(join(inMemory(), 'holdfast-simulation-'));
  #databases = new Set();
  #connections = new Map();
  #current;
  /** By name, all whose requests have come. */
  #processes = new Map();
  #caller;

  /** The lock of a presence file is never mistaken, and calls of a worker go one by one. */
  static planned(plan) {
    return { ...plan, hints: 'sure', lanes: 1 };
  }

  /** The modules of the store as the defect of the run changes them. */
  static bend(modules) {
    return modules;
  }

  constructor({ world, clock, ambient, bend, ...parts }) {
    const realm = new Realm({
      ...parts,
      ambient: { ...ambient, setInterval: () => NO_POLL },
      bend: { ...this.#bend(), ...bend },
    });
    this.#SqliteStore = realm.load('store/sqlite/index.js').SqliteStore;
    folders.add(this.#folder);
    this.#options = { path: join(this.#folder, 'run.db'), clock, synchronous: 'normal' };
    this.store = new this.#SqliteStore(this.#options);
    this.served = new Proxy({}, { get: (_, verb) => this.#verb(verb) });
    // As its clock does: whole milliseconds since the epoch, and never early.
    const exact = (ms) => EPOCH_MS + world.now + ms;
    this.time = { now: () => Math.floor(exact(0)), after: (ms) => Math.ceil(exact(ms)) };
  }

  async open() {
    await this.store.open();
  }

  /** The next calls come from there. */
  async use(link, process) {
    this.#caller = process;
    this.#processes.set(process.name, process);
    this.#current = this.#connections.get(link);
    if (this.#current !== undefined) return;
    this.#current = new this.#SqliteStore(this.#options);
    this.#connections.set(link, this.#current);
    await this.#current.open();
  }

  /** The store shortens what belongs to the dead; whatever else it shortens is its own fault, and nobody is told. */
  hinting(witness) {
    return {
      probe: async (queue) => {
        const reply = await this.#current.probe(queue);
        for (const { id, suspected, expiresInMs } of await this.store.sessions(queue)) {
          const isKnown = witness.endOf(id) === this.time.now() + expiresInMs;
          if (suspected && !isKnown && witness.processOf(id)?.isDead === true) witness.shortened(id, expiresInMs);
        }
        return reply;
      },
    };
  }

  close() {
    for (const database of this.#databases) database.close();
    removed(this.#folder);
    folders.delete(this.#folder);
  }

  #verb(verb) {
    const value = this.#current[verb];
    return typeof value === 'function' ? value.bind(this.#current) : value;
  }

  /** The real one. What it opens is closed at the end, whatever is under way. */
  async #driver() {
    const driver = await nodeRequire('../../dist/store/sqlite/driver/load.js').loadDriver();
    const open = (...args) => {
      const database = driver.open(...args);
      const close = database.close.bind(database);
      this.#databases.add(database);
      database.close = () => this.#databases.delete(database) && close();
      return database;
    };
    return { ...driver, open };
  }

  #bend() {
    const isDead = (name) => this.#processes.get(name)?.isDead === true;
    const holdPresence = () => ({ name: this.#caller.name, release: () => undefined });
    const Peers = class {
      dead(names) {
        return names.filter(isDead);
      }

      clean() {}

      cleanOrphans() {}

      close() {}
    };
    return {
      'store/sqlite/driver/load.js': () => ({ loadDriver: () => this.#driver() }),
      'store/sqlite/liveness/presence.js': () => ({ holdPresence, Peers }),
      'store/sqlite/state/clock.js': ({ startClock }) => ({ startClock: (db, clock) => startClock(db, clock, 'the only boot') }),
    };
  }
}

function removed(folder) {
  rmSync(folder, { recursive: true, force: true });
}

/** Linux has files in memory; elsewhere a disk does. */
function inMemory() {
  try {
    accessSync('/dev/shm', constants.W_OK);
    return '/dev/shm';
  } catch {
    return tmpdir();
  }
}
