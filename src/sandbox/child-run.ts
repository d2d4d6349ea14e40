// One run of a job in a child, as the worker sees it: sends the job, serves the calls of its handler, passes an abort on, and ends the child
// if the handler does not stop in time.
import { HoldfastError, isError } from '../errors.js';
import { type Job, runStepsOf } from '../handle/job.js';
import { decode } from '../job/payload.js';
import { show } from '../runtime/check.js';
import { systemClock } from '../runtime/clock.js';
import { clearInterval, clearTimeout, setInterval, setTimeout } from '../runtime/timers.js';
import { HeldLock } from '../session/held-lock.js';
import { moment } from '../session/trust.js';
import type { Carrier } from './carrier.js';
import { arrived, leaving } from './crossing-error.js';
import { stuckError } from './ends.js';
import { type Call, CALLS, type FromChild, STEP_CALLS, type StepCall, type SentJob, type ToChild } from './messages.js';

type Settle = (resolve: (value: unknown) => void, reject: (error: Error) => void) => void;
type CallMessage = Extract<FromChild, { kind: 'call' }>;
type Reply = Extract<ToChild, { kind: 'reply' }>;

export interface ChildRunOptions {
  number: number;
  job: Job;
  carrier: Carrier;
  graceMs: number;
  /** The handler has not stopped in time. */
  onStuck(): void;
}

const CALLABLE: ReadonlySet<string> = new Set([...CALLS, ...STEP_CALLS]);
/** A child process gets the end of its trust this many times within the time for which its lock can be trusted. */
const SHARES = 3;
const LEAST_PERIOD_MS = 20;

/** The memory of the session that a carrier has got. Sending it takes longer than the rest of a message. */
const known = new WeakMap<Carrier, SharedArrayBuffer>();

export class ChildRun {
  readonly number: number;
  readonly job: Job;
  /** An error that no code of the handler caught. */
  doomed: Error | undefined;
  /** Set by the child. */
  settle: (settle: Settle) => void = () => undefined;
  readonly #options: ChildRunOptions;
  readonly #lock: HeldLock | undefined;
  #signal: AbortSignal | undefined;
  #grace: NodeJS.Timeout | undefined;
  #graceMs: number;
  #trust: NodeJS.Timeout | undefined;
  #over = false;
  #isStuck = false;

  constructor(options: ChildRunOptions) {
    const { number, job, graceMs } = options;
    this.number = number;
    this.job = job;
    this.#options = options;
    this.#graceMs = graceMs;
    this.#lock = job.lock instanceof HeldLock ? job.lock : undefined;
  }

  begin(signal: AbortSignal | undefined): void {
    const { carrier } = this.#options;
    const lock = carrier.ownEnd === undefined ? this.#trusted() : this.#shared(carrier.ownEnd);
    carrier.send({ kind: 'run', run: this.number, job: sentJob(this.job), ...lock });
    this.#signal = signal;
    if (signal?.aborted === true) this.#abort();
    else signal?.addEventListener('abort', this.#abort, { once: true });
  }

  hurry(ms: number): void {
    this.#graceMs = Math.min(this.#graceMs, ms);
    if (this.#grace === undefined) return;
    clearTimeout(this.#grace);
    this.#arm();
  }

  /** The handler has ended. */
  ended(message: Extract<FromChild, { kind: 'done' | 'failed' }>): void {
    // Read before the run ends: a message that a handler made up may not be readable.
    if (message.kind === 'failed') {
      const error = arrived(message.error);
      this.#end((_resolve, reject) => reject(error));
    } else {
      const value = decode(message.value);
      this.#end((resolve) => resolve(value));
    }
  }

  /** The child has ended before the handler. */
  died(error: HoldfastError): void {
    const { carrier, graceMs } = this.#options;
    const why = this.doomed ?? (this.#isStuck ? stuckError(carrier.title, this.job.id, graceMs, this.#signal?.reason) : error);
    this.#end((_resolve, reject) => reject(why));
  }

  /** Makes a call that a handler asks for. A call of a run that is over is refused, as the store would refuse it. */
  static async answer(run: ChildRun | undefined, message: CallMessage): Promise<Reply> {
    const { call, method, args } = message;
    try {
      if (run === undefined || message.run !== run.number)
        throw new HoldfastError('LOCK_LOST', `job.${method}: the run of the job is over. Nothing was changed.`);
      if (!CALLABLE.has(method)) throw new HoldfastError('INVALID_OPTION', `A sandbox cannot call job.${method}.`);
      const given = args.map((text) => (text === null ? undefined : decode(text)));
      const value = await calledOn(run.job, method, given);
      // Before the reply, so that the handler reads the new end after it.
      if (method === 'extendLock') run.#sendTrust();
      return { kind: 'reply', call, ...(value === undefined ? {} : { value: JSON.stringify(value) }) };
    } catch (error) {
      return { kind: 'reply', call, error: leaving(error) };
    }
  }

  readonly #abort = (): void => {
    const reason = abortReason(this.#signal?.reason, this.job.id);
    const lost = reason instanceof HoldfastError && reason.code === 'LOCK_LOST';
    this.#options.carrier.send({ kind: 'abort', run: this.number, reason: leaving(reason), lost });
    this.#arm();
  };

  #arm(): void {
    this.#grace = setTimeout(() => {
      this.#isStuck = true;
      this.#options.onStuck();
    }, this.#graceMs);
  }

  #end(settle: Settle): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#grace);
    clearInterval(this.#trust);
    this.#signal?.removeEventListener('abort', this.#abort);
    // The words belong to the next job of the child.
    this.#lock?.share(undefined);
    this.settle(settle);
  }

  /** What a thread needs to read the lock. */
  #shared(ownEnd: Int32Array): Pick<Extract<ToChild, { kind: 'run' }>, 'lock'> {
    if (this.#lock === undefined) return {};
    const { carrier } = this.#options;
    const { slot, ...memory } = this.#lock.share(ownEnd);
    const isKnown = known.get(carrier) === memory.block;
    known.set(carrier, memory.block);
    return { lock: { slot, timed: this.#lock.timed, ...(isKnown ? {} : { memory }) } };
  }

  /** What a child process gets instead of shared memory: for how long its lock can be trusted. The worker sends it again while the lock is renewed. */
  #trusted(): { until: number } {
    const forMs = this.#lock?.sureForMs() ?? 0;
    const period = Math.max(LEAST_PERIOD_MS, Math.floor(forMs / SHARES));
    this.#trust = setInterval(() => this.#sendTrust(), period);
    return { until: this.#until() };
  }

  #sendTrust(): void {
    const { carrier } = this.#options;
    if (carrier.ownEnd === undefined) carrier.send({ kind: 'trust', run: this.number, until: this.#until() });
  }

  #until(): number {
    return moment(systemClock.monotonic() + Math.min(this.#lock?.sureForMs() ?? 0, 2 ** 30));
  }
}

function sentJob(job: Job): SentJob {
  const { queueName, prefix, parent, parentKey, lock } = job;
  const sent: SentJob = { ...job.asJSON(), token: lock.token, fence: lock.fence, queueName, prefix };
  if (parent !== undefined) sent.parent = parent;
  if (parentKey !== undefined) sent.parentKey = parentKey;
  return sent;
}

/** The reason of an abort is an error with a code inside a sandbox, whatever `cancelJob` got. */
function abortReason(reason: unknown, jobId: string): Error {
  if (isError(reason) && typeof (reason as { code?: unknown }).code === 'string') return reason;
  const why = isError(reason) ? reason.message : typeof reason === 'string' ? reason : show(reason);
  const message = why === 'cancelled' || why === '' ? `Job ${jobId} was cancelled.` : `Job ${jobId} was cancelled: ${why}`;
  return new HoldfastError('CANCELLED', message, { jobId, cause: reason });
}

function calledOn(job: Job, method: Call | StepCall, args: unknown[]): unknown {
  if (method === 'beginStep') return runStepsOf(job).begin(args[0] as string);
  if (method === 'recordStep') return runStepsOf(job).record(args[0] as string, args[1]);
  return (job as unknown as Record<Call, (...args: unknown[]) => unknown>)[method](...args);
}
