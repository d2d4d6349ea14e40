// The verbs of the SQLite store that control a whole queue: configure and forget.
import type { ForgetTarget, MetricsSetting, QueueSettings } from '../contract/index.js';
import type { Callers } from './state/callers.js';
import type { Entries } from './state/entries.js';
import type { EventLog } from './events.js';
import type { Groups } from './state/groups.js';
import type { MinuteCounts } from './state/minute-counts.js';
import type { Rules } from './state/rules.js';
import type { Scheduling } from './schedule.js';
import type { QueueState } from './state/queue-state.js';
import type { Transaction } from './state/transaction.js';

export interface ControllingParts {
  events: EventLog;
  callers: Callers;
  entries: Entries;
  scheduling: Scheduling;
  minutes: MinuteCounts;
  groups: Groups;
  rules: Rules;
}

export class Controlling {
  readonly #parts: ControllingParts;

  constructor(parts: ControllingParts) {
    this.#parts = parts;
  }

  configure(transaction: Transaction, name: string, settings: QueueSettings): void {
    const { paused, blockedMs, cap, rate, metrics, groups, group } = settings;
    const queue = transaction.queue(name);
    queue.changed = true;
    if (paused !== undefined && paused !== (queue.paused === 1)) {
      queue.paused = paused ? 1 : 0;
      queue.tell(paused ? 'paused' : 'resumed');
    }
    if (blockedMs !== undefined) queue.limitedUntil = blockedMs === 0 ? 0 : transaction.after(blockedMs);
    if (blockedMs === 0) queue.windowEnds = 0;
    if (cap !== undefined) queue.maxActive = cap?.maxActive ?? -1;
    if (rate !== undefined) this.#parts.rules.set(queue, { rate });
    if (metrics !== undefined) this.#count(queue, metrics, transaction.now);
    if (groups !== undefined) this.#parts.groups.setRules(queue, groups, transaction.now);
    if (group !== undefined) this.#parts.groups.set(transaction, queue, group);
  }

  #count(queue: QueueState, metrics: MetricsSetting | null, now: number): void {
    const { minutes, rules } = this.#parts;
    // Jobs that finished before this call count under the setting that they found.
    minutes.save(queue, now);
    rules.set(queue, { metrics });
    if (metrics === null) minutes.clear(queue);
    else minutes.trim(queue);
  }

  forget(transaction: Transaction, name: string, what: ForgetTarget): number {
    const queue = transaction.find(name);
    if (queue === undefined) return 0;
    if ('events' in what) return this.#parts.events.trim(queue, what.events);
    if ('deduplication' in what) return this.#parts.entries.forget(queue, what.deduplication, what.ownedBy, transaction.now);
    if ('caller' in what) this.#parts.callers.forget(queue.queue, what.caller);
    else this.#forgetAll(queue, transaction.now);
    return 0;
  }

  /** The counters of events and places continue, because listeners read on and jobs that are still there keep their order. */
  #forgetAll(queue: QueueState, now: number): void {
    this.#parts.scheduling.forget(queue);
    this.#parts.events.trim(queue, 0);
    this.#parts.entries.clear(queue);
    this.#parts.rules.set(queue, { rate: null, metrics: null });
    this.#parts.groups.forgetAll(queue, now);
    this.#parts.minutes.clear(queue);
    Object.assign(queue, { changed: true, paused: 0, maxActive: -1, limitedUntil: 0, windowEnds: 0, lastId: 0 });
  }
}
