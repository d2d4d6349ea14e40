// The steps of a run: work whose result is recorded with the job, so that a later run of the job does not repeat it. Each record is one
// write under the token of the run, so a run that has lost its lock records nothing. It must never decide about locks.
import { HoldfastError, isRetryable, toError } from '../errors.js';
import { decode, encode } from '../job/payload.js';
import { DelayedError } from '../job/signals.js';
import { checkWork, parseStoredName, type StepKind, storedName } from '../job/step-names.js';
import { MAX_DELAY_MS, checkInteger, invalidOption } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';
import { retryPauseMs } from '../runtime/retry-pause.js';
import { untilDone } from '../runtime/until-done.js';
import { setTimeout } from '../runtime/timers.js';
import { MAX_STEP_BYTES, MAX_STEPS, type Step, type WriteReply } from '../store/contract/index.js';
import type { JobSnapshot } from './job-snapshot.js';

/** Passed to the function of a step. */
export interface StepContext {
  /** The same on every run of this step of this job: pass it on as an idempotency key. */
  readonly key: string;
  /** The fence of the run: grows with each run. A system that keeps the last fence can refuse an older one. */
  readonly fence: number;
  /** Aborted when the run must stop. */
  readonly signal: AbortSignal;
  /** Records the result of the step in a transaction of yours, together with your own writes. Call it last in the transaction. */
  commit(result: unknown, options: { transaction: object }): Promise<void>;
}

export interface WaitForOptions {
  /** Rejects with TIMEOUT after this time. Default: waits for as long as it takes. */
  timeoutMs?: number;
}

/** A record of a run, as `job.steps()` lists it. */
export interface StepInfo {
  name: string;
  /** timeout: `waitFor` has ended without its signal. */
  kind: StepKind | 'timeout';
  /** The result of a step, or the data of a signal. */
  value?: unknown;
}

/** Recorded in place of the signal when `waitFor` has ended without it, so that a later signal is refused. It is no JSON text. */
const TIMED_OUT = 'timed out';
/** A wait with at most this much time left, in ms, is over: `#now` is that inexact. */
const EARLY_MS = 1000;
const WAIT_NAMES = new OptionNames<WaitForOptions>({ of: 'waitFor', known: { timeoutMs: true } });
const COMMIT_NAMES = new OptionNames<{ transaction: object }>({ of: 'commit', known: { transaction: true } });

export class RunSteps {
  readonly #snapshot: JobSnapshot;
  /**
   * When this run made its first call of a step, on the clock of `performance`. Time between the claim and that call is not counted, so a wait
   * that goes on after a promotion ends earlier by that time.
   */
  readonly #beganAt = performance.now();
  /** The names that this run has used, and for which kind of call. */
  readonly #asked = new Map<string, StepKind>();
  /** Calls of this run that have not ended, and the steps among them. */
  readonly #open = new Set<Promise<unknown>>();
  readonly #working = new Set<Promise<unknown>>();
  /** The sleep or wait that is about to end the run. */
  #leaving: string | undefined;
  /** The sleep or wait that has ended the run. */
  #suspension: string | undefined;
  /** A second sleep or wait was asked for beside it. */
  #isTorn = false;
  #recorded: Promise<Map<string, string>> | undefined;

  constructor(snapshot: JobSnapshot) {
    this.#snapshot = snapshot;
  }

  async step<T>(name: string, work: (context: StepContext) => T | Promise<T>): Promise<T> {
    checkWork(work);
    const step = this.#tracked(this.#step(name, work));
    this.#working.add(step);
    try {
      return await step;
    } finally {
      this.#working.delete(step);
    }
  }

  async #step<T>(name: string, work: (context: StepContext) => T | Promise<T>): Promise<T> {
    const begun = await this.begin(name);
    if ('value' in begun) return begun.value as T;
    let commits = false;
    const { signal } = this.#snapshot.lock;
    const commit: StepContext['commit'] = async (value, options) => {
      commits = true;
      await this.#commit(name, value, options);
    };
    const result = await work({ ...begun, signal, commit });
    return (commits ? await this.#committed(name) : await this.record(name, result)) as T;
  }

  /** Returns the value that the user's transaction recorded. Rejects if it has rolled back. */
  async #committed(name: string): Promise<unknown> {
    this.#snapshot.record.hasSteps = true;
    this.#recorded = undefined;
    const recorded = (await this.#load()).get(storedName('step', name));
    if (recorded !== undefined) return decode(recorded);
    const { record, context } = this.#snapshot;
    const hint = 'Let the function of the step throw when its transaction rolls back, and end the transaction before it returns.';
    const message = `step "${name}" of job ${record.id}: commit() was called, but the transaction has not committed. ${hint}`;
    throw new HoldfastError('NOT_COMMITTED', message, { jobId: record.id, queue: context.name });
  }

  async #stepsEnd(): Promise<void> {
    while (this.#working.size > 0) await Promise.allSettled(this.#working);
  }

  /** A rejection of a call that the handler does not await must not end the process; `forgotten` reports it. */
  #tracked<T>(call: Promise<T>): Promise<T> {
    this.#open.add(call);
    const ended = (): void => void this.#open.delete(call);
    call.then(ended, ended);
    return call;
  }

  /** True if the handler has ended and a call of it has not. */
  get forgotten(): boolean {
    return this.#open.size > 0;
  }

  get suspension(): string | undefined {
    return this.#suspension;
  }

  /** Begins a step. Returns its value if it is recorded. */
  async begin(name: string): Promise<{ value: unknown } | Pick<StepContext, 'key' | 'fence'>> {
    const stored = this.#ask('step', name);
    const steps = await this.#load();
    const recorded = steps.get(stored);
    if (recorded !== undefined) return { value: decode(recorded) };
    // The effect of a step that finds no room would be repeated by the next attempt.
    if (steps.size >= MAX_STEPS) throw this.#full(name);
    const { lock } = this.#snapshot;
    // A run that must stop does not begin another step.
    lock.signal.throwIfAborted();
    return { key: this.#keyOf(name), fence: lock.fence };
  }

  /** Records the result of a step that was begun, and returns what later runs get. */
  async record(name: string, result: unknown): Promise<unknown> {
    return decode(await this.#record(name, storedName('step', name), this.#encode(name, result)));
  }

  async #commit(name: string, value: unknown, options: { transaction: object }): Promise<void> {
    const text = this.#encode(name, value);
    const { transaction } = COMMIT_NAMES.checked(options);
    // A transaction of Knex is a function.
    if (typeof transaction !== 'function' && (typeof transaction !== 'object' || transaction === null))
      throw invalidOption('transaction', transaction, 'a transaction of yours');
    this.#accept(name, (await this.#write(storedName('step', name), text, transaction)).status);
  }

  /** The first call hands the job back until the time is over, and rejects, so that the run ends. The run after that goes on. */
  async sleep(name: string, ms: number): Promise<void> {
    checkInteger('ms of sleep', ms, { max: MAX_DELAY_MS });
    const stored = this.#ask('sleep', name);
    await this.#tracked(this.#leavingFor(name, () => this.#sleep(name, stored, ms)));
  }

  async #sleep(name: string, stored: string, ms: number): Promise<void> {
    if ((await this.#load()).has(stored)) return;
    await this.#leave(name, { delayMs: ms, step: { name: stored, value: String(ms) } });
  }

  async waitFor(name: string, options: WaitForOptions): Promise<unknown> {
    const { timeoutMs = MAX_DELAY_MS } = WAIT_NAMES.checked(options);
    checkInteger('timeoutMs', timeoutMs, { min: 1, max: MAX_DELAY_MS });
    const wait = this.#ask('wait', name);
    return this.#tracked(this.#leavingFor(name, () => this.#waitFor(name, wait, timeoutMs)));
  }

  async #waitFor(name: string, wait: string, timeoutMs: number): Promise<unknown> {
    const signal = storedName('signal', name);
    let recorded = await this.#load();
    if (!recorded.has(signal)) {
      const until = Number(recorded.get(wait) ?? this.#now() + timeoutMs);
      // A job that was promoted, delayed or retried by hand runs before its time: then it waits again.
      const delayMs = Math.ceil(until - this.#now());
      if (recorded.has(wait) && delayMs <= EARLY_MS) await this.#record(name, signal, TIMED_OUT);
      else await this.#leave(name, { delayMs, step: { name: wait, value: String(Math.ceil(until)) }, awaits: signal });
      // The signal may have come after the steps were read.
      this.#recorded = undefined;
      recorded = await this.#load();
    }
    const data = recorded.get(signal);
    if (data === undefined || data === TIMED_OUT) throw this.#timedOut(name);
    return decode(data);
  }

  /** Returns about the store's time: that of the claim, and the time that has passed here since the first call of a step. */
  #now(): number {
    return (this.#snapshot.record.processedOn ?? Date.now()) + (performance.now() - this.#beganAt);
  }

  /** Lets one sleep or wait at a time end the run. */
  async #leavingFor<T>(name: string, leave: () => Promise<T>): Promise<T> {
    if (this.#leaving !== undefined) {
      this.#isTorn = true;
      throw this.#torn(name, this.#leaving);
    }
    this.#leaving = name;
    try {
      return await leave();
    } finally {
      this.#leaving = undefined;
    }
  }

  #torn(name: string, other: string): HoldfastError {
    const { record, context } = this.#snapshot;
    const hint = 'For several answers, wait for one signal and put the answer into its data.';
    const message = `A run of job ${record.id} cannot wait for "${name}" and "${other}" at the same time. ${hint}`;
    return new HoldfastError('INVALID_STEP', message, { jobId: record.id, queue: context.name });
  }

  /** Returns the recorded names that this run has not asked for; empty if the run has asked for none at all. */
  async unasked(): Promise<string[]> {
    if (this.#recorded === undefined) return [];
    const found = [...(await this.#recorded).keys()].flatMap((stored) => parseStoredName(stored) ?? []);
    const own = found.filter(({ kind, name }) => kind !== 'signal' && !this.#asked.has(name));
    return own.map(({ name }) => name);
  }

  #ask(kind: StepKind, name: unknown): string {
    const stored = storedName(kind, name);
    const { record, context, ended, isCompleting } = this.#snapshot;
    const facts = { jobId: record.id, queue: context.name };
    this.#snapshot.tokenFor(undefined, kind);
    if (ended || isCompleting)
      throw new HoldfastError('LOCK_LOST', `This run of job ${record.id} has ended: let its handler end too.`, facts);
    const before = this.#asked.get(name as string);
    if (before !== undefined) {
      const hint = 'A later run could not tell the two apart: give each its own name, with a number or an id in it.';
      const message = `This run of job ${record.id} has used the name "${String(name)}" before, for a ${before}. ${hint}`;
      throw new HoldfastError('STEP_REPEATED', message, facts);
    }
    this.#asked.set(name as string, kind);
    return stored;
  }

  /** Reads what earlier runs have recorded, once. A job without records costs no call. */
  #load(): Promise<Map<string, string>> {
    this.#recorded ??= this.#read();
    return this.#recorded;
  }

  async #read(): Promise<Map<string, string>> {
    const { record } = this.#snapshot;
    if (record.hasSteps !== true) return new Map();
    return new Map((await readSteps(this.#snapshot)).map(({ name, value }) => [name, value]));
  }

  #keyOf(name: string): string {
    const { context, record } = this.#snapshot;
    // A job of the same id that was added later is another job. An id may hold a colon.
    return [context.prefix, context.name, record.id, record.timestamp].map(encodeURIComponent).concat(name).join(':');
  }

  /** Records under the token, and returns the recorded value. Repeats the write while the store does not reply and the lock is held. */
  async #record(name: string, stored: string, value: string): Promise<string> {
    const write = async (): Promise<string> => {
      const { status, value: recorded = value } = await this.#write(stored, value);
      this.#accept(name, status);
      this.#snapshot.record.hasSteps = true;
      (await this.#load()).set(stored, recorded);
      this.#snapshot.context.stepRecorded?.(this.#snapshot.lock.token, name);
      return recorded;
    };
    return untilDone(write, async (thrown, failures) => {
      // The work is done. A step that is not recorded would be done again.
      if (!isRetryable(thrown) || !this.#snapshot.lock.held) throw thrown;
      await new Promise<void>((resolve) => setTimeout(resolve, retryPauseMs(failures)));
    });
  }

  async #write(stored: string, value: string, transaction?: object): Promise<WriteReply> {
    const { context, record } = this.#snapshot;
    const token = this.#snapshot.tokenFor(undefined, 'step');
    const store = await context.ready();
    const [reply] = await store.write(
      context.stored,
      [{ kind: 'step', jobId: record.id, token, name: stored, value }],
      transaction,
    );
    return reply ?? { status: 'missing' };
  }

  /** Ends the run with a delay. Returns if what the job would wait for has come. */
  async #leave(name: string, delay: { delayMs: number; step: Step; awaits?: string }): Promise<void> {
    const { context, record, lock } = this.#snapshot;
    // The steps beside this call are recorded first: the next run must find them.
    await this.#stepsEnd();
    lock.signal.throwIfAborted();
    if (this.#isTorn) throw this.#torn(name, name);
    const outcome = { kind: 'delay', jobId: record.id, token: this.#snapshot.tokenFor(undefined, 'step'), ...delay } as const;
    const { status } = await context.settle(outcome, false);
    if (status === 'ready') {
      record.hasSteps = true;
      return;
    }
    this.#accept(name, status);
    this.#snapshot.moved(outcome);
    this.#suspension = name;
    const what = delay.awaits === undefined ? `until "${name}" is over` : `for the signal "${name}"`;
    throw new DelayedError(`Job ${record.id} waits ${what}, and runs again then. Let this error pass.`);
  }

  #accept(name: string, status: WriteReply['status']): void {
    if (status === 'full') throw this.#full(name);
    this.#snapshot.accept(status, `step "${name}"`);
  }

  #full(name: string): HoldfastError {
    const limits = `${MAX_STEPS} steps with ${MAX_STEP_BYTES} bytes in all`;
    const hint = 'Return less from its steps: keep large results elsewhere, and return a reference.';
    return this.#unrecordable(name, `a job keeps ${limits}. ${hint}`);
  }

  #unrecordable(name: string, why: string, cause?: unknown): HoldfastError {
    const { record, context } = this.#snapshot;
    const facts = { jobId: record.id, queue: context.name, cause };
    return new HoldfastError('STEP_UNRECORDABLE', `Step "${name}" of job ${record.id} cannot be recorded: ${why}`, facts);
  }

  /** Undefined becomes null, as a result does. */
  #encode(name: string, result: unknown): string {
    if (result === undefined) return 'null';
    try {
      return encode('the result', result);
    } catch (error) {
      throw this.#unrecordable(name, toError(error).message, error);
    }
  }

  #timedOut(name: string): HoldfastError {
    const { record, context } = this.#snapshot;
    const message = `waitFor: job ${record.id} got no signal "${name}" in time.`;
    return new HoldfastError('TIMEOUT', message, { jobId: record.id, queue: context.name });
  }
}

export async function readSteps({ context, record }: JobSnapshot): Promise<Step[]> {
  const store = await context.ready();
  return (await store.jobs(context.stored, { stepsOf: record.id })).steps;
}

export async function listSteps(snapshot: JobSnapshot): Promise<StepInfo[]> {
  return (await readSteps(snapshot)).flatMap<StepInfo>(({ name: stored, value }) => {
    const parsed = parseStoredName(stored);
    if (parsed === undefined) return [];
    const { kind, name } = parsed;
    if (kind === 'signal' && value === TIMED_OUT) return [{ name, kind: 'timeout' }];
    return [kind === 'step' || kind === 'signal' ? { name, kind, value: decode(value) } : { name, kind }];
  });
}

/** Returns the name in the store of the first record that the user knows under this name. */
export async function storedStep(snapshot: JobSnapshot, name: unknown): Promise<string> {
  const fallback = storedName('step', name);
  const steps = await readSteps(snapshot);
  return steps.find(({ name: stored }) => parseStoredName(stored)?.name === name)?.name ?? fallback;
}
