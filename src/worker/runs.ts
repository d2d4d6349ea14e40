// The jobs that this worker has in hand, from the claim to the store's acknowledgement: lock, slot, processor, outcome, and the events
// that the worker emits when the store has accepted the outcome. With `prefetch` there are more jobs than slots. The others wait in
// PrefetchBuffer until a handler ends, or go back unstarted. Runs must never begin a job whose lock is not held, nor run more handlers
// than there are slots.
import { HoldfastError, toError } from '../errors.js';
import type { JobContext } from '../handle/job-context.js';
import { Job, hasOpenCalls, showCutShort, showSettled, suspensionOf, unaskedSteps } from '../handle/job.js';
import type { Outcome, SettleStatus } from '../job/outcome.js';
import type { ClaimedJob } from '../job/record.js';
import { HeldLock } from '../session/held-lock.js';
import type { CallReply } from '../store/client/session-calls.js';
import { PrefetchBuffer, type WaitingJob } from './prefetch-buffer.js';
import type { WorkerContext } from './context.js';
import type { Outbox } from './outbox.js';
import { RecentJobs } from './recent-jobs.js';
import { Run, type RunOwner } from './run.js';
import { TimeLimit } from './time-limit.js';
import { TracedRun } from './traced-run.js';
import { warnOfCaught, warnOfForgotten, warnOfUnasked } from './step-warnings.js';
import type { RunEnd, Runner } from './runner.js';
import { LinkedList } from '../runtime/linked-list.js';
import { checkTelemetry, Tracing } from '../runtime/telemetry.js';
import { performance, setImmediate } from '../runtime/timers.js';

/**
 * How many ms prefetched jobs may begin in one turn of the loop. Handlers that never await would work off the whole prefetch buffer in
 * one turn, and block all other work of the process.
 */
const SHARE_OF_TURN_MS = 2;
/** The same for jobs that begin right after their claim. It is longer, so that short handlers never wait. */
const SHARE_OF_CLAIM_MS = 10;

/** Receives the jobs that the store loop claims. */
export class Runs implements RunOwner {
  readonly #context: WorkerContext;
  /** The part of the worker that its jobs use. */
  readonly #jobContext: JobContext;
  readonly #runner: Runner;
  readonly #outbox: Outbox;
  /** The duration of the locks in ms, if they are not renewed; else undefined. */
  readonly #timedMs: number | undefined;
  readonly #ahead = new PrefetchBuffer(
    () => this.#handBackStale(),
    (session) => this.#context.owner.watchAhead(session),
  );
  /** The runs whose handlers have not ended. */
  readonly #running = new LinkedList<Run>();
  readonly #recent = new RecentJobs();
  readonly #tracing: Tracing | undefined;
  #turnBegan = 0;
  #goesOn: NodeJS.Immediate | undefined;

  constructor(context: WorkerContext, jobContext: JobContext, runner: Runner, outbox: Outbox) {
    this.#context = context;
    this.#jobContext = jobContext;
    this.#runner = runner;
    this.#outbox = outbox;
    const telemetry = checkTelemetry(context.opts.telemetry);
    const onError = (error: Error): void => void context.emitter.emit('error', error);
    this.#tracing = telemetry === undefined ? undefined : new Tracing(telemetry, context.name, onError);
    this.#timedMs = context.opts.skipLockRenewal ? context.opts.lockDuration : undefined;
  }

  /** How many jobs are claimed and not begun. */
  get ahead(): number {
    return this.#ahead.size + this.#runner.waiting;
  }

  isAhead(lock: HeldLock): boolean {
    return this.#ahead.has(lock) || this.#runner.isWaiting(lock);
  }

  /**
   * Tracks the locks of claimed jobs, begins as many jobs as there are slots, and keeps the others until a slot is free. Hands back jobs
   * whose lock can no longer be trusted.
   */
  accept(jobs: ClaimedJob[], { session, sentAt }: CallReply, more: boolean): void {
    const { slots, table, owner } = this.#context;
    const timed = this.#timedMs === undefined ? {} : { timed: { durationMs: this.#timedMs, sentAt } };
    const onGrown = (block: SharedArrayBuffer): void => owner.grow(session, block);
    // With `prefetch`, all jobs go through the buffer, so that handlers that begin now see what else was claimed.
    const isAhead = slots.prefetch > 0;
    this.#turnBegan = performance.now();
    // Track all locks before the first job begins: its handler may block the loop, and the renewer must see the other locks meanwhile.
    const taken: WaitingJob[] = [];
    const refused: ClaimedJob[] = [];
    for (const claimed of jobs) {
      const lock = new HeldLock({ session, job: claimed, isAhead, onGrown, ...timed });
      if (table.track(lock)) {
        slots.inHand += 1;
        taken.push({ claimed, lock, isAhead });
      } else {
        lock.release();
        this.#emitTooLate(claimed);
        refused.push(claimed);
      }
    }
    let begun = 0;
    let turnIsOver = false;
    for (const job of taken) {
      if (isAhead || this.#ahead.size > 0 || slots.running >= slots.concurrency || turnIsOver) this.#ahead.add(job);
      else if (!this.#begin(job)) {
        this.#emitTooLate(job.claimed);
        refused.push(job.claimed);
      } else {
        begun += 1;
        // A job that only joins its batch takes no time. A job that waited for its turn would leave no room for the next claim of its batch.
        if (this.#runner.beginsAtOnce && begun < taken.length && isLookedAt(begun)) {
          turnIsOver = performance.now() - this.#turnBegan > SHARE_OF_CLAIM_MS;
        }
      }
    }
    if (refused.length > 0) this.#outbox.handBack(refused);
    this.beginNext(more);
  }

  /** Begins waiting jobs, as far as slots are free. */
  beginNext(more?: boolean): void {
    const { slots } = this.#context;
    if (this.#goesOn !== undefined) return;
    while (this.#ahead.size > 0 && slots.running < slots.concurrency) {
      if (performance.now() - this.#turnBegan > SHARE_OF_TURN_MS) {
        this.#goesOn = setImmediate(() => {
          this.#goesOn = undefined;
          this.#turnBegan = performance.now();
          this.beginNext(more);
        });
        return;
      }
      const next = this.#ahead.next() as WaitingJob;
      // The job never started, so emit nothing. Hand it back: the store may still list this worker as its owner.
      if (!this.#begin(next)) this.#outbox.handBack([next.claimed]);
    }
    if (!this.#runner.gathered(more)) this.handBackAhead();
  }

  /** Hands back the jobs that wait for a slot, except the first `keep`. They never started, so they go back unchanged. */
  handBackAhead(keep = 0): void {
    this.handBackUnbegun(this.#runner.takeWaiting());
    const back = this.#ahead.takeBeyond(keep);
    if (back.length === 0) return;
    this.#context.slots.pace.broken();
    for (const { lock } of back) this.#letGo(lock);
    this.#outbox.handBack(back.map(({ claimed }) => claimed));
  }

  /** With `prefetch`, the jobs that have a free slot stay: they begin in the next turns of the loop. */
  #handBackStale(): void {
    const { concurrency, prefetch, running } = this.#context.slots;
    this.handBackAhead(prefetch === 0 ? 0 : Math.max(0, concurrency - running));
  }

  /** Hands back jobs that were passed to the runner and have not begun. */
  handBackUnbegun(locks: HeldLock[]): void {
    if (locks.length === 0) return;
    this.#context.slots.running -= locks.length;
    const unbegun = new Set(locks);
    for (const run of Array.from(this.#running.forward())) if (unbegun.has(run.lock)) this.#running.remove(run);
    for (const lock of locks) this.#letGo(lock);
    this.#outbox.handBack(locks.map(({ jobId, token }) => ({ id: jobId, token })));
  }

  /** Called when the lock of a job was lost. Returns true if the job has not begun: then it is handed back and never begins. */
  dropAhead(lock: HeldLock): boolean {
    if (this.#runner.isWaiting(lock)) {
      this.handBackUnbegun(this.#runner.takeWaiting(lock));
      return true;
    }
    if (!this.#ahead.delete(lock)) return false;
    this.#letGo(lock);
    this.#outbox.handBack([{ id: lock.jobId, token: lock.token }]);
    return true;
  }

  /**
   * Begins a job if its lock is trusted, and if the renewer has not given the job back. A suspicion check is not needed: if replies took longer
   * than the grace, no check would ever succeed, and no job would begin.
   */
  #begin({ claimed, lock }: WaitingJob): boolean {
    // Handlers that began before may have blocked the loop for longer than the lock lasts.
    if (!lock.begin()) {
      this.#letGo(lock);
      return false;
    }
    const { emitter, slots } = this.#context;
    slots.running += 1;
    const job = new Job(this.#jobContext, claimed, { lock });
    if (this.#runner.beginsAtOnce) emitter.emit('active', job, 'waiting');
    const run = this.#tracing === undefined ? new Run(this, job, lock) : this.#traced(job, lock, this.#tracing);
    this.#running.pushBack(run);
    this.#limit(run);
    if (this.#runner.beginsAtOnce) run.begun();
    if (run instanceof TracedRun) run.within(() => this.#runner.run(job, lock, run));
    else this.#runner.run(job, lock, run);
    return true;
  }

  #traced(job: Job, lock: HeldLock, tracing: Tracing): TracedRun {
    const { name: queue, opts } = this.#context;
    return new TracedRun(this, job, lock, tracing, { queue, worker: opts.name });
  }

  #limit(run: Run): void {
    const { job, lock } = run;
    const { opts, owner } = this.#context;
    const timeoutMs = timeoutOf(job) ?? opts.timeoutMs;
    if (timeoutMs === undefined) return;
    run.limit = new TimeLimit(lock, {
      timeoutMs,
      graceMs: opts.timeoutGraceMs,
      // The outcome is prepared now: when it is needed, this event loop is blocked.
      onStart: (inMs, error) => {
        const outcome = this.#runner.blockedOutcome(job, lock, error);
        owner.limit(lock.session, { inMs, fence: lock.fence, reason: error.message, outcome });
      },
      onEnd: () => owner.unlimit(lock.session, lock.token),
      onOver: (error) => void this.#cutShort(run, error),
    });
  }

  /** The handler has not ended in time. Its lock is given up first: the store may let another owner in before its reply arrives. */
  async #cutShort(run: Run, error: HoldfastError): Promise<void> {
    showCutShort(run.job);
    run.lock.lose('its time limit is over, and the handler did not stop');
    const end = await this.#runner.timedOut(run.job, run.lock, error);
    if (run.end === undefined) run.conclude(end);
  }

  /**
   * Emits an error. Otherwise a worker whose locks are too short for its store would claim jobs and hand them back for ever, silently.
   */
  #emitTooLate({ id: jobId }: ClaimedJob): void {
    const { emitter, name: queue } = this.#context;
    const why =
      'its lock was lost before its run could begin. It goes back. Was the process frozen, or is lockDuration too short?';
    emitter.emit('error', new HoldfastError('LOCK_UNTRUSTED', `Job ${jobId} was not started: ${why}`, { jobId, queue }));
  }

  runningIds(): string[] {
    return this.#begun().map(({ job }) => job.id);
  }

  /** Returns the ids of the jobs with these fences whose handlers run, or have ended a moment ago. */
  idsOf(fences: readonly number[]): string[] {
    const wanted = new Set(fences);
    const running = this.#begun().filter(({ lock }) => wanted.has(lock.fence));
    return [...this.#recent.idsOf(wanted), ...running.map(({ job }) => job.id)];
  }

  #begun(): Run[] {
    return Array.from(this.#running.forward()).filter(({ lock }) => !this.#runner.isWaiting(lock));
  }

  /** Hands back the jobs of handlers that go on although their signals were aborted. Their locks are given up first. */
  giveUp(reasonFor: (jobId: string) => Error): void {
    for (const run of Array.from(this.#running.forward())) {
      const { job, lock } = run;
      showCutShort(job);
      lock.lose('the worker was closed, and the handler did not stop');
      // The handler has moved the job itself.
      if (lock.settled) run.conclude({ event: 'none', outcome: undefined });
      else
        run.conclude({
          event: 'interrupted',
          outcome: { kind: 'release', jobId: job.id, token: lock.token },
          error: reasonFor(job.id),
        });
    }
  }

  /** A result that comes too late is reported and not sent: the store would refuse it. */
  endedLate({ job }: Run, end: RunEnd): void {
    if (end.event === 'completed') this.#context.emitter.emit('error', this.#refused(end, job, 'lost'));
  }

  ended(run: Run, delivers: boolean): void {
    this.#running.remove(run);
    this.#recent.add(run.lock.fence, run.job.id);
    run.lock.finishing = true;
    if (hasOpenCalls(run.job)) warnOfForgotten(this.#context.name, run.job.id);
    const { slots } = this.#context;
    slots.running -= 1;
    slots.pace.ended();
    if (delivers && run.lock.completing !== undefined) {
      void this.#confirm(run);
    } else if (delivers) {
      this.#outbox.deliver(run);
    } else {
      this.#letGo(run.lock);
      this.#outbox.slotFreed();
      const { end } = run;
      if (end !== undefined && end.outcome === undefined) this.#movedItself(run.job, end);
    }
    if (this.#ahead.size > 0) this.beginNext();
  }

  #movedItself(job: Job, { returned, error }: Extract<RunEnd, { outcome: undefined }>): void {
    const suspension = suspensionOf(job);
    if (suspension !== undefined && (returned === true || error !== undefined))
      warnOfCaught(this.#context.name, job.id, suspension);
    if (error !== undefined) this.#context.emitter.emit('error', error);
  }

  substitute({ job, outcome }: Run, refusal: HoldfastError): Outcome | undefined {
    return this.#runner.substitute(job, outcome, refusal);
  }

  settled(run: Run, status: SettleStatus | 'unknown', error: Error | undefined): void {
    const { job, lock, end } = run;
    if (status === 'pending' || status === 'unsuccessful') {
      void this.#fail(run, status);
      return;
    }
    if (lock.completing !== undefined && status !== 'done' && status !== 'unknown' && this.#hasCompleted(run, status)) return;
    this.#letGo(lock);
    // The handler has moved the job itself while the job was handed back without it.
    if (end?.event === 'interrupted' && lock.settled) return;
    if (end !== undefined) this.#emitEnd(end, job, status, error);
  }

  /** The handler has completed its job in a transaction, and ended. If the transaction has not committed, the run fails. */
  async #confirm(run: Run): Promise<void> {
    const { job, lock, end } = run;
    const { queue, opts } = this.#context;
    if (end?.event === 'completed') {
      try {
        const store = await this.#context.ready();
        const [status] = await store.extend(queue, [{ jobId: job.id, token: lock.token, durationMs: opts.lockDuration }]);
        if (status === 'done') this.#replace(run, await this.#runner.uncommitted(job, lock));
      } catch (error) {
        this.#context.emitter.emit('error', toError(error));
        // If the transaction has committed, the store refuses this.
        this.#replace(run, { event: 'none', outcome: { kind: 'release', jobId: job.id, token: lock.token } });
      }
    }
    this.#outbox.deliver(run);
  }

  #replace(run: Run, end: RunEnd): void {
    run.end = end;
    if (end.outcome !== undefined) run.outcome = end.outcome;
  }

  /**
   * The handler completed its job in a transaction. Either the transaction has committed and retention has removed the job, or the handler
   * threw after the commit. In the second case the completion is sent once more: the store recognises it by its token.
   */
  #hasCompleted(run: Run, status: SettleStatus): boolean {
    const { lock, end, job } = run;
    const { completing } = lock;
    if (completing === undefined) return false;
    const isKnown = end?.outcome === completing.outcome;
    if (isKnown && status !== 'missing') return false;
    if (end?.event === 'failed') this.#context.emitter.emit('error', end.error);
    run.end = { event: 'completed', ...completing };
    run.outcome = completing.outcome;
    if (!isKnown && status !== 'missing') {
      this.#outbox.deliver(run);
      return true;
    }
    this.#letGo(lock);
    this.#emitEnd(run.end, job, 'done', undefined);
    return true;
  }

  /** The children of the job refuse its completion, so its run fails. Lock and slot stay until the store has acknowledged that. */
  async #fail(run: Run, status: 'pending' | 'unsuccessful'): Promise<void> {
    this.#replace(run, await this.#runner.refusedByChildren(run.job, run.lock, status));
    this.#outbox.deliver(run);
  }

  #letGo(lock: HeldLock): void {
    this.#context.table.untrack(lock);
    this.#context.slots.inHand -= 1;
  }

  #emitEnd(end: RunEnd, job: Job, status: SettleStatus | 'unknown', error: Error | undefined): void {
    const { emitter } = this.#context;
    if (status === 'unknown') {
      emitter.emit('error', error ?? new Error('the store did not answer'));
      return;
    }
    if (status !== 'done') {
      emitter.emit('error', this.#refused(end, job, status));
      return;
    }
    if (end.event === 'interrupted') emitter.emit('interrupted', job, end.error);
    if (end.outcome !== undefined) showSettled(job, end.outcome);
    if (end.event === 'completed') {
      void unaskedSteps(job)?.then((names) => warnOfUnasked(this.#context.name, names));
      emitter.emit('completed', job, end.value, 'active');
    }
    if (end.event === 'failed') emitter.emit('failed', job, end.error, 'active');
  }

  #refused(end: RunEnd, { id: jobId }: Job, status: Exclude<SettleStatus, 'done'>): HoldfastError {
    const what = status === 'lost' ? 'its lock was lost, and another worker may be running it' : 'it does not exist any more';
    const message = `Could not settle job ${jobId} as ${end.outcome?.kind ?? 'moved'}: ${what}. Nothing was changed.`;
    return new HoldfastError(status === 'lost' ? 'LOCK_LOST' : 'JOB_MISSING', message, { jobId, queue: this.#context.name });
  }
}

function timeoutOf(job: Job): number | undefined {
  try {
    return job.opts.timeoutMs;
  } catch {
    // The end of the run reports options that cannot be read.
    return undefined;
  }
}

/**
 * True for the handlers of a claim after which the clock is read: 1, 2, 4, 8, 16, 24 … Each read takes 100 ns, 3 % of a job on a store in
 * memory.
 */
function isLookedAt(begun: number): boolean {
  return (begun & 7) === 0 || (begun & (begun - 1)) === 0;
}
