// The verbs of the memory store that control a queue: configure and forget.
import type { ForgetTarget, MetricsSetting, QueueSettings } from '../contract/index.js';
import { countingEntry } from './state/deduplication.js';
import { MinuteCounts } from './state/minute-counts.js';
import { ClaimLimits } from './state/rate-limit.js';
import { forgetSchedules } from './schedule.js';
import type { QueueState } from './state/queue-state.js';

export function configure(queue: QueueState, settings: QueueSettings, now: number): void {
  const { paused, blockedMs, cap, rate, metrics, groups, group } = settings;
  if (paused !== undefined && paused !== queue.paused) {
    queue.paused = paused;
    queue.log.record(paused ? 'paused' : 'resumed');
  }
  if (blockedMs !== undefined) queue.limits.block(blockedMs, now);
  if (cap !== undefined) queue.cap = cap === null ? undefined : { ...cap };
  if (rate !== undefined) queue.rate = rate === null ? undefined : { ...rate };
  if (metrics !== undefined) setMetrics(queue, metrics);
  if (groups !== undefined) queue.waiting.groups.setRules(groups, now);
  if (group !== undefined) queue.waiting.groups.set(group, now);
  queue.wake.signal();
}

function setMetrics(queue: QueueState, metrics: MetricsSetting | null): void {
  if (metrics === null) {
    queue.metrics = undefined;
    return;
  }
  const { points } = metrics;
  queue.metrics ??= { completed: new MinuteCounts(points), failed: new MinuteCounts(points) };
  for (const counts of Object.values(queue.metrics)) {
    counts.keep = points;
    counts.trim();
  }
}

export function forget(queue: QueueState, what: ForgetTarget, now: number): number {
  if ('events' in what) return queue.log.trim(what.events);
  if ('deduplication' in what) return forgetEntries(queue, what.deduplication, what.ownedBy, now);
  if ('caller' in what) queue.adds.forget(what.caller);
  else forgetAll(queue, now);
  return 0;
}

/** An entry that does not count may be stored until a sweep: it is no entry to the caller. */
function forgetEntries(queue: QueueState, ids: string[], owner: string | undefined, now: number): number {
  const counting = [...new Set(ids)].map((id) => countingEntry(queue, id, now)).filter((entry) => entry !== undefined);
  const found = counting.filter((entry) => owner === undefined || entry.owner === owner);
  for (const { id } of found) queue.entries.delete(id);
  return found.length;
}

function forgetAll(queue: QueueState, now: number): void {
  forgetSchedules(queue, now);
  queue.log.trim(0);
  queue.limits = new ClaimLimits();
  queue.rate = undefined;
  queue.metrics = undefined;
  queue.paused = false;
  queue.cap = undefined;
  queue.lastId = 0;
  queue.entries.clear();
  const isUsed = [...queue.sessions.values()].some((session) => session.open);
  queue.waiting.groups.forgetAll(now, isUsed);
  queue.wake.signal();
}
