// Makes the stations of a worker and connects them. Jobs pass them in this order: the store loop claims jobs, Runs begins them, Runner
// calls the processor, and the outcome goes through the outbox back to the store loop. Each station gets the context and the stations that
// it calls; none is called by a station that it calls itself.
import { renewers } from '../background/renewers.js';
import type { JobContext } from '../handle/job-context.js';
import type { Job } from '../handle/job.js';
import { NO_LOCK } from '../job/lock.js';
import type { QueueNames } from '../job/names.js';
import type { VerdictRules } from '../job/verdict.js';
import { systemClock } from '../runtime/clock.js';
import type { ChildPool } from '../sandbox/pool.js';
import type { HeldLock } from '../session/held-lock.js';
import { LockTable } from '../session/lock-table.js';
import type { Session } from '../session/session.js';
import { SessionOwner } from '../session/session-owner.js';
import { Debts } from '../store/client/debts.js';
import { SessionCalls } from '../store/client/session-calls.js';
import { leaseStore } from '../store/open.js';
import type { WorkerContext } from './context.js';
import type { AnyWorkerEmitter } from './events.js';
import { Health } from './health.js';
import { Lifecycle } from './lifecycle.js';
import { LockEvents } from './lock-events.js';
import { LockMonitor } from './lock-monitor.js';
import { ManualJobs } from './manual.js';
import type { CheckedWorkerOptions } from './options.js';
import { Outbox } from './outbox.js';
import type { Handler } from './processor.js';
import { QueueSetup } from './queue-setup.js';
import { Runner } from './runner.js';
import { BatchRunner } from './batch-runner.js';
import type { BatchProcessor } from './batch.js';
import { BatchSlots } from './batch-slots.js';
import { Runs } from './runs.js';
import { Slots } from './slots.js';
import { StoreLoop } from './store-loop.js';
import { Undelivered } from './undelivered.js';

/** A store may take this long to reply, in ms, however short the locks are. */
const MIN_HANG_MS = 1000;

export interface Stations {
  readonly context: WorkerContext;
  readonly jobContext: JobContext;
  /** Undefined if the worker has no processor. */
  readonly runs: Runs | undefined;
  readonly manual: ManualJobs;
  readonly storeLoop: StoreLoop;
  readonly lockEvents: LockEvents;
  readonly undelivered: Undelivered;
  /** Set if the processor is a file. */
  readonly childPool: ChildPool | undefined;
}

/** `processor`: undefined if jobs are taken by hand. */
export function makeStations(
  emitter: AnyWorkerEmitter,
  names: QueueNames,
  opts: CheckedWorkerOptions,
  processor: Handler | undefined,
  childPool: ChildPool | undefined,
): Stations {
  // The context's parts report to stations that are made after it. They do so only later, when the worker runs.
  const context = makeContext(emitter, names, opts, processor === undefined, () => stations);
  const rules = rulesOf(opts);
  const onError = (error: Error): void => void emitter.emit('error', error);
  const strategy = opts.settings?.repeatStrategy;
  const debts = new Debts({ queue: names.stored, strategy, ready: () => context.ready(), onError });
  const manual = new ManualJobs(context, debts);
  const jobContext = makeJobContext(context, names, rules, manual);
  const outbox = new Outbox();
  const runs: Runs | undefined =
    processor === undefined
      ? undefined
      : new Runs(
          context,
          jobContext,
          makeRunner(context, rules, processor, () => runs),
          outbox,
        );
  const storeLoop = new StoreLoop(context, outbox, debts, runs);
  const lockEvents = new LockEvents(context, jobContext, storeLoop, debts, runs);
  const undelivered = new Undelivered(context, outbox);
  const stations: Stations = { context, jobContext, runs, manual, storeLoop, lockEvents, undelivered, childPool };
  return stations;
}

function makeRunner(
  { slots, emitter, opts: { batch, maxStartedAttempts } }: WorkerContext,
  rules: VerdictRules,
  processor: Handler,
  runs: () => Runs | undefined,
): Runner {
  if (batch === undefined || !(slots instanceof BatchSlots)) return new Runner({ processor, rules, maxStartedAttempts });
  return new BatchRunner({
    processor: processor as unknown as BatchProcessor,
    rules,
    maxStartedAttempts,
    batch,
    slots,
    emitter,
    onUnbegun: (locks) => runs()?.handBackUnbegun(locks),
  });
}

function makeContext(
  emitter: AnyWorkerEmitter,
  { name, stored: queue }: QueueNames,
  opts: CheckedWorkerOptions,
  byHand: boolean,
  stations: () => Stations,
): WorkerContext {
  const { lockDuration, lockRenewTime, skipLockRenewal, runRetryDelay: retryDelayMs } = opts;
  const renewMs = skipLockRenewal ? 0 : lockRenewTime;
  const onError = (error: Error): void => void emitter.emit('error', error);
  const lease = leaseStore(opts.connection, onError);
  const ready = () => lease.ready();
  const lifecycle = new Lifecycle(name, byHand);
  const slots =
    opts.batch === undefined ? new Slots(opts.concurrency, opts.prefetch) : new BatchSlots(opts.concurrency, opts.batch.size);
  const table = new LockTable({ onLost: (locks, reason) => locksLost(stations(), locks, reason) });
  const owner = new SessionOwner({
    queue,
    lease,
    name: opts.name,
    sessionOptions: opts,
    renewers,
    durationMs: lockDuration,
    renewMs,
    slots: slots.concurrency,
    blockedStack: opts.blockedStack,
    listenerFor: (session) => stations().lockEvents.listenerFor(session),
    onError,
  });
  const health = new Health({
    queue,
    clock: systemClock,
    slots,
    prefetched: () => stations().runs?.ahead ?? 0,
    idleMs: opts.drainDelay * 1000,
    renewMs,
    session: () => owner.current,
    state: () => lifecycle.state,
    overdueMs: () => stations().context.calls.stuckMs,
    refusal: () => lifecycle.refusal,
    onBlocked: (blockedMs) => stations().lockEvents.blockedOnLoop(blockedMs),
  });
  const hangMs = Math.max(MIN_HANG_MS, lockDuration);
  const onRecovered = (outageMs: number): void => void emitter.emit('recovered', outageMs);
  const queueSetup = new QueueSetup({ queue, opts, owner, lifecycle, emitter, ready });
  const prepare = (session: Session) => queueSetup.prepare(session);
  const calls = new SessionCalls({
    queue,
    who: 'worker',
    owner,
    health,
    ready,
    prepare,
    hangMs,
    onStuck: (call) => stations().undelivered.stuck(call),
    retryDelayMs,
    onError,
    onRecovered,
  });
  const monitor = opts.useDedicatedLockThread ? new LockMonitor(() => table.jobIds()) : undefined;
  const release = () => lease.release();
  return { name, queue, opts, emitter, lifecycle, slots, table, owner, calls, health, queueSetup, monitor, ready, release };
}

function rulesOf({ settings, removeOnComplete, removeOnFail }: CheckedWorkerOptions): VerdictRules {
  return { backoffStrategy: settings?.backoffStrategy, removeOnComplete, removeOnFail };
}

/** Makes the part of the worker that its jobs use. */
function makeJobContext(
  { table, emitter, ready }: WorkerContext,
  { name, prefix, stored }: QueueNames,
  rules: VerdictRules,
  manual: ManualJobs,
): JobContext {
  return {
    name,
    prefix,
    stored,
    ...rules,
    ready,
    take: (jobId) => manual.takeById(jobId),
    settle: (outcome, fetchNext) => manual.settle(outcome, fetchNext),
    extend: (jobId, token, durationMs) => manual.extend({ jobId, token, durationMs }),
    lockFor: ({ token }) => table.get(token) ?? NO_LOCK,
    interrupt: (token, error) => table.get(token)?.withdraw(error),
    completing: (token, completing) => {
      const lock = table.get(token);
      if (lock !== undefined) lock.completing = completing;
    },
    progressed: (job, progress) => void emitter.emit('progress', job as Job, progress),
  };
}

/** Only locks of running jobs are reported: jobs taken by hand concern their caller, and jobs that have not begun go back. */
function locksLost({ manual, runs, lockEvents }: Stations, locks: HeldLock[], reason: string): void {
  const running = locks.filter((lock) => !manual.forget(lock) && runs?.dropAhead(lock) !== true);
  if (running.length > 0) lockEvents.lost(running, reason);
}
