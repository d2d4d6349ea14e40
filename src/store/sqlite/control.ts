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

/** How far `forget` with `all` is. */
export interface Forgetting {
  after: string | undefined;
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
      queue.record(paused ? 'paused' : 'resumed');
    }
    if (blockedMs !== undefined) queue.limitedUntil = blockedMs === 0 ? 0 : transaction.after(blockedMs);
    if (blockedMs === 0) queue.windowEnds = 0;
    if (cap !== undefined) queue.maxActive = cap?.maxActive ?? -1;
    if (rate !== undefined) this.#parts.rules.set(queue, { rate });
    if (metrics !== undefined) this.#count(queue, metrics, transaction.now);
    if (groups !== undefined) this.#parts.groups.setRules(queue, groups);
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

  forget(transaction: Transaction, name: string, what: Exclude<ForgetTarget, { all: true }>): number {
    const queue = transaction.find(name);
    if (queue === undefined) return 0;
    if ('events' in what) return this.#parts.events.trim(queue, what.events);
    if ('deduplication' in what) return this.#parts.entries.forget(queue, what.deduplication, what.ownedBy, transaction.now);
    if ('caller' in what) this.#parts.callers.forget(queue.queue, what.caller);
    return 0;
  }

  /**
   * Carries out one step of `forget` with `all`, so that no transaction takes long. Groups come first: `after` is the key after which they
   * go on, undefined when they are through. Returns undefined after the last step.
   */
  forgetSome(transaction: Transaction, name: string, { after }: Forgetting): Forgetting | undefined {
    const { groups, scheduling, entries } = this.#parts;
    const queue = transaction.find(name);
    if (queue === undefined) return undefined;
    queue.changed = true;
    const next = after === undefined ? undefined : groups.forgetSome(queue, after, transaction.now);
    if (next !== undefined || scheduling.forgetSome(transaction, queue) || entries.clearSome(queue)) return { after: next };
    this.#forgetRest(queue);
    return undefined;
  }

  /** The counters of events and places continue, because listeners read on and jobs that are still there keep their order. */
  #forgetRest(queue: QueueState): void {
    this.#parts.events.trim(queue, 0);
    this.#parts.rules.set(queue, { rate: null, metrics: null });
    this.#parts.minutes.clear(queue);
    Object.assign(queue, { paused: 0, maxActive: -1, limitedUntil: 0, windowEnds: 0, lastId: 0 });
  }
}
