// The memory store as the server of a run: one store for all connections, on the clock of the run.
import { withHints } from '../hints.mjs';
import { Realm } from '../realm.mjs';

export class MemoryEngine {
  /** As anybody may read it, and as requests meet it. */
  store;
  /** Where expiry is judged, for whoever keeps books of it. */
  time;
  #memory;
  #realm;

  /** The plan as far as it can be carried out here. */
  static planned(plan) {
    return plan;
  }

  /** The modules of the store as the defect of the run changes them. */
  static bend(modules) {
    return modules;
  }

  constructor({ world, clock, bend, ...parts }) {
    const realm = new Realm({ ...parts, bend });
    this.#realm = realm;
    const { Memory } = realm.load('store/memory/state/memory.js');
    const { MemoryStore } = realm.load('store/memory/index.js');
    this.#memory = new Memory(clock);
    this.store = new MemoryStore({ clock }, this.#memory);
    this.time = { now: () => world.now, after: (ms) => world.now + ms };
  }

  get realm() {
    return this.#realm;
  }

  get memory() {
    return this.#memory;
  }

  get served() {
    return this.store;
  }

  hinting(witness, hints) {
    return hints === 'none' ? {} : withHints(this.store, { memory: this.#memory, witness, isFallible: hints === 'fallible' });
  }

  async open() {}

  async use() {}

  close() {}
}
