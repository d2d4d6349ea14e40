// The verbs of the memory store that control a queue, or write to its jobs: configure, write, forget.
import type { SettleStatus } from '../../job/outcome.js';
import { isLargeValue } from '../budget.js';
import type { ForgetTarget, QueueSettings, Write, WriteReply } from '../contract/index.js';
import { RateLimit } from './rate-limit.js';
import type { QueueState, StoredJob } from './state.js';

export function configure(queue: QueueState, { paused, blockedMs, cap }: QueueSettings, now: number): void {
  if (paused !== undefined && paused !== queue.paused) {
    queue.paused = paused;
    queue.log.tell(paused ? 'paused' : 'resumed');
  }
  if (blockedMs !== undefined) queue.rate.block(blockedMs, now);
  if (cap !== undefined) queue.cap = cap === null ? undefined : { ...cap };
  queue.wake.signal();
}

export function write(queue: QueueState, item: Write): WriteReply {
  const job = queue.jobs.get(item.jobId);
  const status = writeStatus(job, item.token);
  if (job === undefined || status !== 'done') return { status };
  switch (item.kind) {
    case 'data':
      job.data = item.data;
      return { status };
    case 'progress':
      job.progress = item.progress;
      if (isLargeValue(item.progress)) queue.log.tell('progress', job.id, { large: 1 });
      else queue.log.tell('progress', job.id, { data: item.progress }, item.progress.length);
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

export function forget(queue: QueueState, what: ForgetTarget): number {
  if ('events' in what) return queue.log.trim(what.events);
  if ('caller' in what) queue.adds.forget(what.caller);
  else forgetAll(queue);
  return 0;
}

function forgetAll(queue: QueueState): void {
  queue.log.trim(0);
  queue.rate = new RateLimit();
  queue.paused = false;
  queue.cap = undefined;
  queue.lastId = 0;
  queue.wake.signal();
}
