// The verbs of the SQLite store that control a whole queue: pause, limit, cap, forget and trimEvents.
import type { Cap } from '../contract/index.js';
import type { EventLog } from './events.js';
import type { Transaction } from './transaction.js';

export class Controlling {
  readonly #events: EventLog;

  constructor(events: EventLog) {
    this.#events = events;
  }

  pause(transaction: Transaction, name: string, paused: boolean): void {
    const queue = transaction.queue(name);
    if ((queue.paused === 1) === paused) return;
    queue.paused = paused ? 1 : 0;
    queue.tell(paused ? 'paused' : 'resumed');
  }

  limit(transaction: Transaction, name: string, durationMs: number): void {
    const queue = transaction.queue(name);
    queue.changed = true;
    queue.limitedUntil = durationMs === 0 ? 0 : transaction.after(durationMs);
    if (durationMs === 0) queue.windowEnds = 0;
  }

  cap(transaction: Transaction, name: string, given: Cap | undefined): void {
    const queue = transaction.queue(name);
    queue.changed = true;
    queue.maxActive = given?.maxActive ?? -1;
  }

  /** The counters of events and places continue, because listeners read on and jobs that are still there keep their order. */
  forget(transaction: Transaction, name: string): void {
    const queue = transaction.find(name);
    if (queue === undefined) return;
    this.#events.trim(queue, 0);
    Object.assign(queue, { changed: true, paused: 0, maxActive: -1, limitedUntil: 0, windowEnds: 0, lastId: 0 });
  }

  trimEvents(transaction: Transaction, name: string, keep: number): number {
    const queue = transaction.find(name);
    return queue === undefined ? 0 : this.#events.trim(queue, keep);
  }
}
