// The state of a queue: counts, limits, and what a query asks for beside them. Queues, workers and dashboards call it through the store.
import type { QueueMetrics, QueueStatus, StatusQuery } from '../../contract/index.js';
import type { Runner } from '../driver/runner.js';
import { findSchedules } from '../schedule.js';
import { findGroups } from './groups.js';
import type { Engine } from '../driver/engine.js';

type Raw = [numbers: number[], owners: (string | 0)[], priorities: number[], metrics: number[]];
type MetricsQuery = NonNullable<StatusQuery['metrics']>;

/** Minutes that one script reads. More would block Redis for milliseconds. */
const MINUTES_AT_ONCE = 2000;

export async function status({ run }: Pick<Engine, 'run'>, queue: string, query: StatusQuery = {}): Promise<QueueStatus> {
  const { deduplication = [], priorities = [], metrics, schedules, groups } = query;
  const args = [metrics?.kind ?? '', priorities.length, ...priorities, ...deduplication];
  const [numbers, owners, sizes, counts] = (await run('status', queue, args)) as Raw;
  const found = readNumbers(numbers);
  if (query.deduplication !== undefined) found.deduplication = owners.map((owner) => (owner === 0 ? undefined : owner));
  if (query.priorities !== undefined) found.priorities = sizes;
  if (metrics !== undefined && counts.length > 0) found.metrics = await readMetrics(run, queue, metrics, counts);
  if (schedules !== undefined) found.schedules = await findSchedules(run, queue, schedules);
  if (groups !== undefined) found.groups = await findGroups(run, queue, groups);
  return found;
}

function readNumbers([paused, ...numbers]: number[]): QueueStatus {
  const [waiting = 0, prioritized = 0, delayed = 0, active = 0, completed = 0, failed = 0, ...limits] = numbers;
  const [cap = 0, blockedMs = 0, used = 0, endsInMs = 0, rateMax = 0, durationMs = 0, parents = 0] = limits;
  const found: QueueStatus = {
    paused: paused === 1,
    counts: { waiting, prioritized, delayed, active, completed, failed, 'waiting-children': parents },
  };
  if (blockedMs > 0) found.blockedMs = blockedMs;
  if (endsInMs > 0) found.window = { used, endsInMs };
  if (rateMax > 0) found.rate = { max: rateMax - 1, durationMs };
  if (cap > 0) found.cap = { maxActive: cap - 1 };
  return found;
}

async function readMetrics(run: Runner, queue: string, query: MetricsQuery, counts: number[]): Promise<QueueMetrics> {
  const [count = 0, minute = 0, current = 0, first = 0] = counts;
  if (minute === 0) return { count, points: [], total: 0 };
  const total = minute - first;
  const from = query.start < 0 ? Math.max(0, total + query.start) : query.start;
  const to = query.end < 0 ? total + query.end : Math.min(query.end, total - 1);
  // Position 0 is the minute before the current one.
  const points = await readMinutes(run, queue, query.kind, minute - 1 - to, minute - 1 - from);
  return { count, current: { minute, count: current }, points, total };
}

/** Returns the jobs of each minute, the newest first. Redis stores only the minutes in which jobs finished. */
async function readMinutes(run: Runner, queue: string, kind: string, first: number, last: number): Promise<number[]> {
  const points = Array.from({ length: Math.max(0, last - first + 1) }, () => 0);
  for (let from = first; from <= last; from += MINUTES_AT_ONCE) {
    const to = Math.min(last, from + MINUTES_AT_ONCE - 1);
    for (const text of (await run('minutes', queue, [kind, from, to])) as string[]) {
      const [minute, jobs] = text.split(',').map(Number);
      points[last - (minute ?? 0)] = jobs ?? 0;
    }
  }
  return points;
}
