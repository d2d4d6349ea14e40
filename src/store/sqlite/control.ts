// The verbs of the SQLite store that control a whole queue: configure and forget.
import type { ForgetTarget, QueueSettings } from '../contract/index.js';
import type { Callers } from './callers.js';
import type { EventLog } from './events.js';
import type { QueueState } from './queue-state.js';
import type { Transaction } from './transaction.js';

export class Controlling {
  readonly #events: EventLog;
  readonly #callers: Callers;

  constructor(events: EventLog, callers: Callers) {
    this.#events = events;
    this.#callers = callers;
  }

  configure(transaction: Transaction, name: string, { paused, blockedMs, cap }: QueueSettings): void {
    const queue = transaction.queue(name);
    queue.changed = true;
    if (paused !== undefined && paused !== (queue.paused === 1)) {
      queue.paused = paused ? 1 : 0;
      queue.tell(paused ? 'paused' : 'resumed');
    }
    if (blockedMs !== undefined) queue.limitedUntil = blockedMs === 0 ? 0 : transaction.after(blockedMs);
    if (blockedMs === 0) queue.windowEnds = 0;
    if (cap !== undefined) queue.maxActive = cap?.maxActive ?? -1;
  }

  forget(transaction: Transaction, name: string, what: ForgetTarget): number {
    const queue = transaction.find(name);
    if (queue === undefined) return 0;
    if ('events' in what) return this.#events.trim(queue, what.events);
    if ('caller' in what) this.#callers.forget(queue.queue, what.caller);
    else this.#forgetAll(queue);
    return 0;
  }

  /** The counters of events and places continue, because listeners read on and jobs that are still there keep their order. */
  #forgetAll(queue: QueueState): void {
    this.#events.trim(queue, 0);
    Object.assign(queue, { changed: true, paused: 0, maxActive: -1, limitedUntil: 0, windowEnds: 0, lastId: 0 });
  }
}
