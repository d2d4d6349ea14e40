// Reads the finished jobs of each minute. The server returns the minutes in which jobs finished; this file adds the zeros between them.
import type { QueueMetrics, StatusQuery } from '../../contract/index.js';
import type { Server } from '../driver/server.js';

interface Row {
  count: number;
  /** How many points the queue keeps. */
  keep: number;
  /** In their order. The last one is the current minute. */
  minutes: [minute: number, count: number][];
}

/** Returns undefined if the queue does not count. */
export async function readMetrics(
  server: Server,
  queue: string,
  { kind, start, end }: NonNullable<StatusQuery['metrics']>,
): Promise<QueueMetrics | undefined> {
  const row = await server.call<Row | null>('metrics_of', { name: queue, kind });
  if (row === null) return undefined;
  const [current, first] = [row.minutes.at(-1), row.minutes[0]];
  if (current === undefined || first === undefined) return { count: row.count, points: [], total: 0 };
  const [minute, count] = current;
  const total = Math.min(row.keep, minute - first[0]);
  const from = Math.max(0, start < 0 ? total + start : start);
  const to = end < 0 ? total + end : Math.min(end, total - 1);
  const counts = new Map(row.minutes);
  const points = Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => counts.get(minute - 1 - from - index) ?? 0);
  return { count: row.count, current: { minute, count }, points, total };
}
