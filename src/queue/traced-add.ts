// Adds jobs inside spans, and stores the context of the span with the jobs, so that their runs become part of the same trace.
import type { JobsOptions } from '../job/options.js';
import { SpanKind, TelemetryAttributes, type Tracing } from '../runtime/telemetry.js';

interface Added {
  readonly id: string;
}

export async function tracedAdd<J extends Added, O extends JobsOptions>(
  tracing: Tracing,
  { queue, name, opts, defaults }: { queue: string; name: string; opts: O | undefined; defaults: JobsOptions },
  add: (opts: O | undefined) => Promise<J>,
): Promise<J> {
  const open = tracing.open(SpanKind.PRODUCER, 'add', `${queue}.${name}`);
  return tracing.around(open, async () => {
    const job = await add(withContext(opts, tracing.metadataOf(open), defaults));
    tracing.guarded(() => open?.span.setAttributes({ [TelemetryAttributes.JobName]: name, [TelemetryAttributes.JobId]: job.id }));
    return job;
  });
}

export async function tracedAddBulk<B extends { name: string; opts?: JobsOptions }, V>(
  tracing: Tracing,
  { queue, jobs, defaults }: { queue: string; jobs: B[]; defaults: JobsOptions },
  add: (jobs: B[]) => Promise<V>,
): Promise<V> {
  const open = tracing.open(SpanKind.PRODUCER, 'addBulk', queue);
  return tracing.around(open, async () => {
    // A list that is not valid is refused by `add`.
    if (!Array.isArray(jobs) || !jobs.every((job) => typeof job === 'object' && job !== null)) return add(jobs);
    tracing.guarded(() =>
      open?.span.setAttributes({
        [TelemetryAttributes.BulkNames]: jobs.map(({ name }) => name),
        [TelemetryAttributes.BulkCount]: jobs.length,
      }),
    );
    const metadata = tracing.metadataOf(open);
    return add(jobs.map((job) => ({ ...job, opts: withContext(job.opts, metadata, defaults) })));
  });
}

/** A context that the caller gives stays. Options that are no object are refused later. */
export function withContext<O extends JobsOptions>(
  opts: O | undefined,
  metadata: string | undefined,
  defaults: JobsOptions,
): O | undefined {
  if (metadata === undefined || (opts !== undefined && (typeof opts !== 'object' || opts === null))) return opts;
  const given = opts?.telemetry ?? defaults.telemetry;
  if (given?.omitContext === true || given?.metadata !== undefined) return opts;
  return { ...(opts as O), telemetry: { ...given, metadata } };
}
