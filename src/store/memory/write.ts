// The verb `write` of the memory store: writes to a job, by its owner or from outside.
import type { SettleStatus } from '../../job/outcome.js';
import { isLargeValue } from '../budget.js';
import type { Write, WriteReply } from '../contract/index.js';
import { sendToWaiting } from './change.js';
import type { QueueState, StoredJob } from './state/queue-state.js';
import { recordStep } from './state/steps.js';

type StepWrite = Extract<Write, { kind: 'step' }>;

export function write(queue: QueueState, item: Write, now: number): WriteReply {
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
    case 'step':
      return writeStep(queue, job, item, now);
  }
}

/** Records a step of the owner, or a signal. */
function writeStep(queue: QueueState, job: StoredJob, { name, value, token }: StepWrite, now: number): WriteReply {
  if (token === undefined && job.finishedOn !== undefined) return { status: 'ended' };
  const recorded = recordStep(job, { name, value });
  if (recorded === undefined) return { status: 'full' };
  if (token !== undefined) job.stalledCounter = 0;
  else if (job.state === 'delayed' && job.extras?.awaits === name) sendToWaiting(queue, job, { kind: 'promote' }, now);
  return { status: 'done', value: recorded };
}

function writeStatus(job: StoredJob | undefined, token: string | undefined): SettleStatus {
  if (job === undefined) return 'missing';
  return token === undefined || job.lock?.token === token ? 'done' : 'lost';
}

function keepNewest(rows: string[], keep: number): number {
  if (rows.length > keep) rows.splice(0, rows.length - keep);
  return rows.length;
}
