// The steps of a run: work whose result is recorded with the job, so that a later run of the job does not repeat it. Each record is one
// write under the token of the run, so a run that has lost its lock records nothing. It must never decide about locks.
import { HoldfastError, isRetryable } from '../errors.js';
import { decode, encode } from '../job/payload.js';
import { DelayedError } from '../job/signals.js';
import { checkWork, parseStoredName, type StepKind, storedName } from '../job/step-names.js';
import { MAX_DELAY_MS, checkInteger, invalidOption } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';
import { retryPauseMs } from '../runtime/retry-pause.js';
import { setTimeout } from '../runtime/timers.js';
import { MAX_STEP_BYTES, MAX_STEPS, type Step, type WriteReply } from '../store/contract/index.js';
import type { JobSnapshot } from './job-snapshot.js';

/** What the function of a step gets. */
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
  kind: StepKind;
  /** The result of a step, or the data of a signal. */
  value?: unknown;
}

const WAIT_NAMES = new OptionNames<WaitForOptions>({ of: 'waitFor', known: { timeoutMs: true } });
const COMMIT_NAMES = new OptionNames<{ transaction: object }>({ of: 'commit', known: { transaction: true } });

export class RunSteps {
  readonly #snapshot: JobSnapshot;
  /** The names that this run has asked for. */
  readonly #asked = new Set<string>();
  #recorded: Promise<Map<string, string>> | undefined;

  constructor(snapshot: JobSnapshot) {
    this.#snapshot = snapshot;
  }

  async step<T>(name: string, work: (context: StepContext) => T | Promise<T>): Promise<T> {
    checkWork(work);
    const begun = await this.begin(name);
    if ('value' in begun) return begun.value as T;
    let committed: unknown;
    const result = await work({
      ...begun,
      signal: this.#snapshot.lock.signal,
      commit: async (value, options) => {
        await this.#commit(name, value, options);
        committed = { value };
      },
    });
    return (await this.record(name, committed === undefined ? result : (committed as { value: unknown }).value)) as T;
  }

  /** Begins a step. Returns its value if it is recorded. */
  async begin(name: string): Promise<{ value: unknown } | Pick<StepContext, 'key' | 'fence'>> {
    const recorded = (await this.#load()).get(this.#ask('step', name));
    if (recorded !== undefined) return { value: decode(recorded) };
    const { lock } = this.#snapshot;
    // A run that must stop does not begin another step.
    lock.signal.throwIfAborted();
    return { key: this.#keyOf(name), fence: lock.fence };
  }

  /** Records the result of a step that was begun, and returns what later runs get. */
  async record(name: string, result: unknown): Promise<unknown> {
    return decode(await this.#record(name, storedName('step', name), encodeStep(name, result)));
  }

  async #commit(name: string, value: unknown, options: { transaction: object }): Promise<void> {
    const text = encodeStep(name, value);
    const { transaction } = COMMIT_NAMES.checked(options);
    // A transaction of Knex is a function.
    if (typeof transaction !== 'function' && (typeof transaction !== 'object' || transaction === null))
      throw invalidOption('transaction', transaction, 'a transaction of yours');
    this.#accept(name, (await this.#write(storedName('step', name), text, transaction)).status);
  }

  /** The first call hands the job back until the time is over, and rejects, so that the run ends. The run after that goes on. */
  async sleep(name: string, ms: number): Promise<void> {
    checkInteger('sleep', ms, { max: MAX_DELAY_MS });
    const stored = this.#ask('sleep', name);
    if ((await this.#load()).has(stored)) return;
    this.#snapshot.lock.signal.throwIfAborted();
    await this.#leave(name, { delayMs: ms, step: { name: stored, value: String(ms) } });
  }

  async waitFor(name: string, options: WaitForOptions): Promise<unknown> {
    const { timeoutMs = MAX_DELAY_MS } = WAIT_NAMES.checked(options);
    checkInteger('timeoutMs', timeoutMs, { min: 1, max: MAX_DELAY_MS });
    const wait = this.#ask('wait', name);
    const [signal, timeout] = [storedName('signal', name), storedName('timeout', name)];
    let recorded = await this.#load();
    if (!recorded.has(timeout) && !recorded.has(signal)) {
      this.#snapshot.lock.signal.throwIfAborted();
      if (recorded.has(wait)) await this.#record(name, timeout, 'true');
      else await this.#leave(name, { delayMs: timeoutMs, step: { name: wait, value: String(timeoutMs) }, awaits: signal });
      // The signal came after the steps were read.
      this.#recorded = undefined;
      recorded = await this.#load();
    }
    const data = recorded.get(signal);
    if (recorded.has(timeout) || data === undefined) throw this.#timedOut(name);
    return decode(data);
  }

  /** Returns the recorded names that this run has not asked for; empty if the run has asked for none at all. */
  async unasked(): Promise<string[]> {
    if (this.#recorded === undefined) return [];
    const names = [...(await this.#recorded).keys()].filter((stored) => !this.#asked.has(stored));
    const found = names.flatMap((stored) => parseStoredName(stored) ?? []);
    return found.filter(({ kind }) => kind !== 'signal' && kind !== 'timeout').map(({ name }) => name);
  }

  #ask(kind: StepKind, name: unknown): string {
    const stored = storedName(kind, name);
    const { record, context, ended } = this.#snapshot;
    const facts = { jobId: record.id, queue: context.name };
    this.#snapshot.tokenFor(undefined, kind);
    if (ended) throw new HoldfastError('LOCK_LOST', `This run of job ${record.id} has ended: let its handler end too.`, facts);
    if (this.#asked.has(stored)) {
      const hint = 'A later run could not tell the two apart: give each its own name, with a number or an id in it.';
      throw new HoldfastError(
        'STEP_REPEATED',
        `This run of job ${record.id} has used the ${kind} "${String(name)}" before. ${hint}`,
        facts,
      );
    }
    this.#asked.add(stored);
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
    // A job of the same id that was added later is another job.
    return `${context.prefix}:${context.name}:${record.id}:${record.timestamp}:${name}`;
  }

  /** Records under the token, and returns the recorded value. Repeats the write while the store does not reply and the lock is held. */
  async #record(name: string, stored: string, value: string): Promise<string> {
    for (let failures = 1; ; failures += 1) {
      try {
        const { status, value: recorded = value } = await this.#write(stored, value);
        this.#accept(name, status);
        this.#snapshot.record.hasSteps = true;
        (await this.#load()).set(stored, recorded);
        this.#snapshot.context.stepRecorded?.(this.#snapshot.lock.token, name);
        return recorded;
      } catch (error) {
        // The work is done. A step that is not recorded would be done again.
        if (!isRetryable(error) || !this.#snapshot.lock.held) throw error;
        await new Promise<void>((resolve) => setTimeout(resolve, retryPauseMs(failures)));
      }
    }
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
    const { context, record } = this.#snapshot;
    const outcome = { kind: 'delay', jobId: record.id, token: this.#snapshot.tokenFor(undefined, 'step'), ...delay } as const;
    const { status } = await context.settle(outcome, false);
    if (status === 'ready') {
      record.hasSteps = true;
      return;
    }
    this.#accept(name, status);
    this.#snapshot.settled(outcome);
    throw new DelayedError(`Job ${record.id} waits until "${name}" is over, and runs again then. Let this error pass.`);
  }

  #accept(name: string, status: WriteReply['status']): void {
    if (status !== 'full') {
      this.#snapshot.accept(status, `step "${name}"`);
      return;
    }
    const { record, context } = this.#snapshot;
    const limits = `${MAX_STEPS} steps with ${MAX_STEP_BYTES} bytes in all`;
    const hint = 'Return less from its steps: keep large results elsewhere, and return a reference.';
    const facts = { jobId: record.id, queue: context.name };
    throw new HoldfastError(
      'PAYLOAD_TOO_LARGE',
      `Job ${record.id} has no room for "${name}": a job keeps ${limits}. ${hint}`,
      facts,
    );
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
  return (await readSteps(snapshot)).flatMap(({ name: stored, value }) => {
    const parsed = parseStoredName(stored);
    if (parsed === undefined) return [];
    const { kind, name } = parsed;
    return [kind === 'step' || kind === 'signal' ? { name, kind, value: decode(value) } : { name, kind }];
  });
}

/** Returns the name in the store of the first record that the user knows under this name. */
export async function storedStep(snapshot: JobSnapshot, name: unknown): Promise<string> {
  const fallback = storedName('step', name);
  const steps = await readSteps(snapshot);
  return steps.find(({ name: stored }) => parseStoredName(stored)?.name === name)?.name ?? fallback;
}

/** Undefined becomes null, as a result does. */
function encodeStep(name: string, result: unknown): string {
  return result === undefined ? 'null' : encode(`The result of step "${name}"`, result);
}
