// waitUntilFinished reads the end of a job from the event log, and also from the job itself. The log alone is not enough: the job may have
// finished before, and a listener that is slower than the queue misses trimmed events. The job alone is not enough either: it may be
// removed when it finishes.
import { HoldfastError, toError } from '../errors.js';
import { decode } from '../job/payload.js';
import { MAX_TIMER_MS, checkInteger, invalidOption } from '../runtime/check.js';
import type { Store } from '../store/contract/index.js';
import type { JobSnapshot } from './job-snapshot.js';
import { clearTimeout, performance, setInterval, setTimeout } from '../runtime/timers.js';

export type JobEnd =
  | { kind: 'completed'; value: unknown }
  | { kind: 'failed'; reason: string }
  | { kind: 'removed' }
  /** The job completed, and its result is no longer stored. */
  | { kind: 'result gone' }
  /** The job is gone, and the log no longer has its end. */
  | { kind: 'end gone' }
  /** The listener was closed; no more ends will be reported. */
  | { kind: 'closed' };

/** The part of QueueEvents that a waiting job uses. */
export interface FinishSource {
  /** The stored name of its queue. */
  readonly stored: string;
  waitUntilReady(): Promise<void>;
  /** Calls the listener with every end of the job in the log. Returns a function that stops it. */
  watchJob(jobId: string, listener: (end: JobEnd) => void): () => void;
  /** Returns the end of a removed job, if the log still has it. */
  endInLog(jobId: string): Promise<JobEnd | undefined>;
}

const RECHECK_MS = 5000;

export async function waitUntilFinished(snapshot: JobSnapshot, source: FinishSource, ttl?: number): Promise<unknown> {
  checkSource(snapshot, source);
  if (ttl !== undefined) checkInteger('ttl', ttl, { max: MAX_TIMER_MS });
  const started = performance.now();
  await source.waitUntilReady();
  const store = await snapshot.context.ready();
  return new Promise((resolve, reject) => {
    const timers: NodeJS.Timeout[] = [];
    let finished = false;
    const finish = (settle: () => void): void => {
      finished = true;
      unwatch();
      for (const timer of timers) clearTimeout(timer);
      settle();
    };
    const end = (found: JobEnd): void =>
      finish(() => (found.kind === 'completed' ? resolve(found.value) : reject(errorOf(snapshot, found))));
    // The watch starts before the read; otherwise an end between the two would be missed.
    const unwatch = source.watchJob(snapshot.record.id, end);
    const look = async (): Promise<void> => {
      const found = await endOf(snapshot, store, source);
      if (found !== undefined) end(found);
    };
    const recheck = (): void => {
      // A failed read says nothing about the job: the next one decides.
      look().catch(() => undefined);
    };
    timers.push(setInterval(recheck, RECHECK_MS));
    look().then(
      () => {
        if (ttl === undefined || finished) return;
        const left = Math.max(0, ttl - (performance.now() - started));
        timers.push(setTimeout(() => finish(() => reject(timedOut(snapshot, ttl))), left));
      },
      (thrown: unknown) => finish(() => reject(toError(thrown))),
    );
  });
}

async function endOf(snapshot: JobSnapshot, store: Store, source: FinishSource): Promise<JobEnd | undefined> {
  const { id } = snapshot.record;
  const [record] = (await store.jobs(snapshot.context.stored, [id])).jobs;
  if (record === undefined) return (await source.endInLog(id)) ?? { kind: 'removed' };
  if (record.state === 'completed') return { kind: 'completed', value: decode(record.returnvalue ?? 'null') };
  if (record.state === 'failed') return { kind: 'failed', reason: record.failedReason ?? '' };
  return undefined;
}

function errorOf(snapshot: JobSnapshot, end: Exclude<JobEnd, { kind: 'completed' }>): HoldfastError {
  const facts = { jobId: snapshot.record.id, queue: snapshot.context.name };
  if (end.kind === 'failed') return new HoldfastError('JOB_FINISHED', end.reason, facts);
  if (end.kind === 'removed') return snapshot.missing('waitUntilFinished');
  if (end.kind === 'result gone' || end.kind === 'end gone')
    return new HoldfastError('RESULT_GONE', goneText(snapshot, end.kind), facts);
  return new HoldfastError(
    'CLOSED',
    `waitUntilFinished: the QueueEvents was closed before job ${snapshot.record.id} finished.`,
    facts,
  );
}

function goneText(snapshot: JobSnapshot, kind: 'result gone' | 'end gone'): string {
  const { id, name } = snapshot.record;
  const what =
    kind === 'result gone'
      ? 'completed and was removed, and its result is no longer kept'
      : 'is gone, and the event log of its queue no longer says how it ended';
  return `Job ${id} ("${name}") ${what}. Keep finished jobs for a while (removeOnComplete: { age: 3600 }), or wait for them sooner.`;
}

function timedOut(snapshot: JobSnapshot, ttl: number): HoldfastError {
  const { id, name } = snapshot.record;
  return new HoldfastError(
    'TIMEOUT',
    `Job ${id} ("${name}") did not finish within ${ttl} ms. It goes on; wait again or look at its state.`,
    {
      jobId: id,
      queue: snapshot.context.name,
    },
  );
}

function checkSource(snapshot: JobSnapshot, source: unknown): void {
  const given = source as Partial<FinishSource> | null | undefined;
  if (typeof given?.watchJob !== 'function') throw invalidOption('queueEvents', source, 'a QueueEvents');
  if (given.stored !== snapshot.context.stored) {
    throw invalidOption('queueEvents', given.stored, `a QueueEvents of the same queue ("${snapshot.context.stored}")`);
  }
}
