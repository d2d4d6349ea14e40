// From the options of a job to the job that a store takes: the only place that knows which option becomes which field.
import { checkGroupId } from './group.js';
import type { JobsOptions } from './options.js';
import type { NewJob } from './record.js';

/** `text`: the options as the store keeps them. `now`: epoch ms. The caller sets the id and the deduplication, if any. */
export function newJob(name: string, data: string, opts: JobsOptions, text: string, now: number): NewJob {
  const job: NewJob = {
    name,
    data,
    opts: text,
    priority: opts.priority ?? 0,
    delayMs: opts.delay ?? 0,
    lifo: opts.lifo ?? false,
    timestamp: opts.timestamp ?? now,
  };
  if (opts.lockKey !== undefined) job.lockKey = opts.lockKey;
  // Read once more, so checked once more: a getter may return another id now.
  if (opts.group !== undefined) job.group = checkGroupId(opts.group.id, 'group.id');
  return job;
}
