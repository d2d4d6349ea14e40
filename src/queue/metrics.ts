// The metrics of a queue, in BullMQ's shape: finished jobs per minute, and a text for Prometheus.
import type { FinishedState, JobType } from '../job/state.js';
import { isFinished } from '../job/state.js';
import { checkInteger, invalidOption } from '../runtime/check.js';
import type { Store } from '../store/contract/index.js';

const MINUTE_MS = 60_000;
const LABEL = /^(?!__)[A-Za-z_]\w*$/;
const OWN_LABELS: ReadonlySet<string> = new Set(['queue', 'state']);

/** Numbers of minutes, for the worker option `metrics: { maxDataPoints }`. */
export const MetricsTime = {
  ONE_MINUTE: 1,
  FIVE_MINUTES: 5,
  FIFTEEN_MINUTES: 15,
  THIRTY_MINUTES: 30,
  ONE_HOUR: 60,
  ONE_WEEK: 10_080,
  TWO_WEEKS: 20_160,
  /** Eight weeks, as in BullMQ. */
  ONE_MONTH: 80_640,
} as const;

export type MetricsTime = (typeof MetricsTime)[keyof typeof MetricsTime];

export interface Metrics {
  meta: {
    /** All finished jobs of the kind since a worker asked for metrics. */
    count: number;
    /** The beginning of the last minute in which a job finished, in epoch ms of the store's clock. 0 before the first job. */
    prevTS: number;
    /** `count` at that moment. */
    prevCount: number;
  };
  /** Finished jobs of each whole minute, the newest first. The current minute is not among them. */
  data: number[];
  /** The number of whole minutes that are kept. */
  count: number;
}

export async function readMetrics(
  store: Store,
  queue: string,
  kind: FinishedState,
  start: number,
  end: number,
): Promise<Metrics> {
  if (typeof kind !== 'string' || !isFinished(kind)) throw invalidOption('type', kind, "'completed' or 'failed'");
  checkInteger('start', start, { min: Number.MIN_SAFE_INTEGER });
  checkInteger('end', end, { min: Number.MIN_SAFE_INTEGER });
  const { metrics } = await store.status(queue, { metrics: { kind, start, end } });
  const { count = 0, current, points = [], total = 0 } = metrics ?? {};
  const prevTS = (current?.minute ?? 0) * MINUTE_MS;
  return { meta: { count, prevTS, prevCount: count - (current?.count ?? 0) }, data: points, count: total };
}

/** Returns the text that Prometheus reads. The names are BullMQ's, so that existing dashboards find them. */
export function prometheusText(
  queue: string,
  counts: Partial<Record<JobType, number>>,
  finished: Record<FinishedState, number>,
  variables: Record<string, string>,
): string {
  checkLabels(variables);
  const labels = (own: Record<string, string>): string =>
    Object.entries({ ...own, ...variables })
      .map(([name, value]) => `${name}="${escapeLabel(value)}"`)
      .join(', ');
  const lines = ['# HELP bullmq_job_count Number of jobs in the queue by state', '# TYPE bullmq_job_count gauge'];
  for (const [state, count] of Object.entries(counts)) lines.push(`bullmq_job_count{${labels({ queue, state })}} ${count}`);
  for (const [kind, count] of Object.entries(finished)) {
    lines.push(`# HELP bullmq_job_${kind}_total Total number of ${kind} jobs`, `# TYPE bullmq_job_${kind}_total counter`);
    lines.push(`bullmq_job_${kind}_total{${labels({ queue })}} ${count}`);
  }
  return `${lines.join('\n')}\n`;
}

/** Prometheus drops the whole text if one label has an invalid name, or if two series are the same. */
function checkLabels(variables: Record<string, string>): void {
  if (typeof variables !== 'object' || variables === null || Array.isArray(variables))
    throw invalidOption('globalVariables', variables, 'an object that maps names of labels to texts');
  for (const [name, value] of Object.entries(variables)) {
    const option = `globalVariables.${name}`;
    if (!LABEL.test(name) || OWN_LABELS.has(name))
      throw invalidOption(option, value, 'a label of letters, digits and _ with another name than queue and state');
    if (typeof value !== 'string' && typeof value !== 'number') throw invalidOption(option, value, 'a text');
  }
}

function escapeLabel(value: unknown): string {
  return String(value).replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
