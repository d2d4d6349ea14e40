// The job that a handler gets inside a sandbox. It shows what a Job shows. Its methods are calls to the worker, which makes them on the Job
// itself, with the token. A call that the store refuses rejects with the same error as outside, and leaves the fields unchanged.
import {
  decodedOnUse,
  decodePayload,
  ENCODED,
  type JobFields,
  PAYLOADS,
  type Payload,
  type PayloadReader,
  shown,
  showPlain,
} from '../handle/fields.js';
import { HoldfastError } from '../errors.js';
import type { Job } from '../handle/job.js';
import type { StepContext } from '../handle/steps.js';
import { checkWork } from '../job/step-names.js';
import type { JobProgress } from '../handle/job-context.js';
import type { Any } from '../job/typing.js';
import type { HeldLock } from '../session/held-lock.js';
import { type Call, CALLS, type SentJob, type StepCall } from './messages.js';

type Field =
  | Exclude<keyof JobFields, 'token'>
  | 'id'
  | 'name'
  | 'queueName'
  | 'queueQualifiedName'
  | 'prefix'
  | 'token'
  | 'discarded'
  | 'deduplicationId'
  | 'gid'
  | 'repeatJobKey'
  | 'parent'
  | 'parentKey'
  | 'lock';

/** The job that a handler in a file gets. */
export type SandboxedJob<Data = Any, Result = Any, Name extends string = string> = Pick<
  Job<Data, Result, Name>,
  Field | Call | 'step'
>;

/** The processor that a file exports. */
export type SandboxedProcessor<Data = Any, Result = Any, Name extends string = string> = (
  job: SandboxedJob<Data, Result, Name>,
  token: string,
  signal: AbortSignal,
) => Promise<Result> | NoInfer<Result>;

export type Caller = (method: Call | StepCall, args: unknown[]) => Promise<unknown>;

/** Decoded up to this length when the job begins, in characters. */
const AT_ONCE = 1024;

/** A transaction of the sandbox cannot go to the worker. */
async function refuseCommit(): Promise<never> {
  const message = 'commit() and complete() work only in the process of the worker: use a processor that is a function.';
  throw new HoldfastError('OPTION_UNSUPPORTED', message, { option: 'transaction' });
}

class JobInSandbox implements PayloadReader {
  readonly #sent: SentJob;
  readonly #call: Caller;
  readonly #decoded: { [P in Payload]?: unknown } = {};
  static readonly #onUse = Object.fromEntries(
    PAYLOADS.map((payload) => [payload, decodedOnUse(payload, (job: JobInSandbox) => job)]),
  ) as Record<Payload, PropertyDescriptor>;

  constructor(sent: SentJob, lock: HeldLock, call: Caller) {
    this.#sent = sent;
    this.#call = call;
    const { id, name, queueName, prefix, token, deduplicationId, group: gid, scheduleId: repeatJobKey, parent, parentKey } = sent;
    Object.assign(this, { id, name, queueName });
    for (const payload of PAYLOADS) {
      const value = shown[payload](sent[payload] as never, AT_ONCE);
      if (value === ENCODED) Object.defineProperty(this, payload, JobInSandbox.#onUse[payload]);
      else Object.assign(this, { [payload]: value });
    }
    showPlain(this as unknown as JobFields, sent);
    Object.assign(this, { prefix, token, discarded: false, deduplicationId, gid, repeatJobKey, parent, parentKey });
    // Hidden, like that of a Job: logs of a job must not show its lock.
    Object.defineProperty(this, 'lock', { value: lock });
  }

  read(payload: Payload): unknown {
    if (!(payload in this.#decoded)) this.#decoded[payload] = decodePayload(payload, this.#sent);
    return this.#decoded[payload];
  }

  set(payload: Payload, value: unknown): void {
    this.#decoded[payload] = value;
  }

  get queueQualifiedName(): string {
    return `${this.#sent.prefix}:${this.#sent.queueName}`;
  }

  call(method: Call, args: unknown[]): Promise<unknown> {
    return this.#call(method, args);
  }

  async updateData(data: unknown): Promise<void> {
    await this.#call('updateData', [data]);
    Object.assign(this, { data });
  }

  async updateProgress(progress: JobProgress): Promise<void> {
    await this.#call('updateProgress', [progress]);
    Object.assign(this, { progress });
  }

  /** The function of the step runs here; the worker reads and records. */
  async step(name: string, work: (context: StepContext) => unknown): Promise<unknown> {
    checkWork(work);
    const begun = (await this.#call('beginStep', [name])) as { value: unknown } | Pick<StepContext, 'key' | 'fence'>;
    if ('value' in begun) return begun.value;
    const { signal } = (this as unknown as { lock: HeldLock }).lock;
    return this.#call('recordStep', [name, await work({ ...begun, signal, commit: refuseCommit })]);
  }

  complete(): Promise<never> {
    return refuseCommit();
  }

  discard(): void {
    Object.assign(this, { discarded: true });
    // After the end of the run it changes nothing.
    this.#call('discard', []).catch(() => undefined);
  }
}

for (const method of CALLS) {
  if (Object.hasOwn(JobInSandbox.prototype, method)) continue;
  Object.defineProperty(JobInSandbox.prototype, method, {
    value(this: JobInSandbox, ...args: unknown[]) {
      return this.call(method, args);
    },
    writable: true,
    configurable: true,
  });
}

export function sandboxedJob(sent: SentJob, lock: HeldLock, call: Caller): SandboxedJob {
  return new JobInSandbox(sent, lock, call) as unknown as SandboxedJob;
}
