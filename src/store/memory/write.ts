// The verb `write` of the memory store: writes to a job, by its owner or from outside.
import type { SettleStatus } from '../../job/outcome.js';
import { isLargeValue } from '../budget.js';
import type { Write, WriteReply } from '../contract/index.js';
import type { QueueState, StoredJob } from './state/queue-state.js';

export function write(queue: QueueState, item: Write): WriteReply {
  if (item.kind === 'event') {
    queue.log.record(item.name, undefined, { args: item.args }, item.args.length);
    return { status: 'done' };
  }
  const job = queue.jobs.get(item.jobId);
  const status = writeStatus(job, item.token);
  if (job === undefined || status !== 'done') return { status };
  switch (item.kind) {
    case 'data':
      job.data = item.data;
      return { status };
    case 'progress':
      job.progress = item.progress;
      if (isLargeValue(item.progress)) queue.log.record('progress', job.id, { large: 1 });
      else queue.log.record('progress', job.id, { data: item.progress }, item.progress.length);
      return { status };
    case 'log':
      job.logs ??= [];
      job.logs.push(item.row);
      return { status, count: keepNewest(job.logs, item.keep ?? Number.POSITIVE_INFINITY) };
    case 'clearLogs':
      return { status, count: keepNewest(job.logs ?? [], item.keep ?? 0) };
  }
}

function writeStatus(job: StoredJob | undefined, token: string | undefined): SettleStatus {
  if (job === undefined) return 'missing';
  return token === undefined || job.lock?.token === token ? 'done' : 'lost';
}

function keepNewest(rows: string[], keep: number): number {
  if (rows.length > keep) rows.splice(0, rows.length - keep);
  return rows.length;
}
