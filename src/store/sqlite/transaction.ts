// What the operations of one commit share: one moment of the store's clock and one copy of each queue's row.
import type { StoreClock } from './clock.js';
import type { QueueState, QueueTable } from './queue-state.js';

export class Transaction {
  readonly now: number;
  readonly #clock: StoreClock;
  readonly #table: QueueTable;
  readonly #queues = new Map<string, QueueState>();

  constructor(clock: StoreClock, table: QueueTable) {
    this.#clock = clock;
    this.#table = table;
    this.now = clock.now();
  }

  after(ms: number): number {
    return this.#clock.after(ms);
  }

  /** The queue, made if nobody has used it before. */
  queue(name: string): QueueState {
    const state = this.find(name) ?? this.#table.create(name);
    this.#queues.set(name, state);
    return state;
  }

  find(name: string): QueueState | undefined {
    const cached = this.#queues.get(name);
    if (cached !== undefined) return cached;
    const state = this.#table.read(name);
    if (state !== undefined) this.#queues.set(name, state);
    return state;
  }

  /** Writes what changed; answers the names of the queues whose watchers must know. */
  save(): string[] {
    const queues = [...this.#queues.values()];
    for (const queue of queues) this.#table.save(queue, this.now);
    return queues.filter(({ changed }) => changed).map(({ name }) => name);
  }
}
