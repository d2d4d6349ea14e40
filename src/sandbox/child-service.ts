// Runs inside a thread or process of a sandbox: loads the user's file, calls its function for one job at a time and sends the results to the
// worker. Errors that no code catches are sent with the run that they come from, so that a job never fails because of another one.
import { AsyncLocalStorage } from 'node:async_hooks';
import v8 from 'node:v8';
import { HoldfastError, toError } from '../errors.js';
import { decode, encode, encodeResult } from '../job/payload.js';
import { importModule } from '../runtime/import-module.js';
import { HeldLock } from '../session/held-lock.js';
import { SeenSession } from '../session/seen-session.js';
import type { SessionBuffers } from '../session/session-memory.js';
import { arrived, leaving } from './crossing-error.js';
import type { Call, FromChild, SharedLock, StepCall, ToChild } from './messages.js';
import { sandboxedJob, type SandboxedProcessor } from './sandboxed-job.js';

type Message<K extends ToChild['kind']> = Extract<ToChild, { kind: K }>;

interface Run {
  readonly number: number;
  readonly jobId: string;
  readonly session: SeenSession;
  readonly lock: HeldLock;
  ended: boolean;
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** Of the largest heap: above it, another child takes over before memory runs out in the middle of a job. */
const FULL = 0.75;

const ignoreSignal = (): void => undefined;

export class ChildService {
  readonly #send: (message: FromChild) => void;
  readonly #runs = new AsyncLocalStorage<Run>();
  readonly #calls = new Map<number, Waiting>();
  #called = 0;
  #processor: SandboxedProcessor | undefined;
  #run: Run | undefined;
  #buffers: SessionBuffers | undefined;
  #ownEnd = new Int32Array(new SharedArrayBuffer(8));
  #ignored: readonly string[] = [];
  #maxHeapBytes = Number.POSITIVE_INFINITY;

  constructor(send: (message: FromChild) => void) {
    this.#send = send;
    process.on('uncaughtException', (error) => this.#uncaught(error));
    process.on('unhandledRejection', (reason) => this.#uncaught(reason));
  }

  receive(message: ToChild): void {
    if (message.kind === 'run') this.#begin(message);
    else if (message.kind === 'reply') this.#replied(message);
    else if (message.kind === 'load') void this.#load(message);
    else if (message.kind === 'signals') this.#ignore(message.ignore);
    else if (message.run === this.#run?.number) change(this.#run, message);
  }

  /** The worker ends its children itself. A signal to the whole process group must not end a job that the worker waits for. */
  #ignore(signals: readonly string[]): void {
    for (const signal of this.#ignored) process.off(signal, ignoreSignal);
    this.#ignored = signals;
    for (const signal of signals) process.on(signal, ignoreSignal);
  }

  async #load({ file, ownEnd, maxHeapBytes }: Message<'load'>): Promise<void> {
    if (ownEnd !== undefined) this.#ownEnd = new Int32Array(ownEnd);
    if (maxHeapBytes !== undefined) this.#maxHeapBytes = maxHeapBytes;
    try {
      this.#processor = functionOf(await importModule(file), file);
      this.#send({ kind: 'loaded' });
    } catch (error) {
      this.#send({ kind: 'unloadable', error: leaving(error) });
    }
  }

  #begin(message: Message<'run'>): void {
    const { job: sent, run: number } = message;
    const session = this.#sessionOf(message);
    const seen = { ownEnd: this.#ownEnd, timed: message.lock?.timed === true };
    const lock = new HeldLock({ session, job: sent, seen, onGrown: () => undefined });
    const run: Run = { number, jobId: sent.id, session, lock, ended: false };
    this.#run = run;
    const call = (method: Call | StepCall, args: unknown[]): Promise<unknown> => this.#call(run, method, args);
    this.#runs.run(run, () => {
      let returned: unknown;
      try {
        returned = (this.#processor as SandboxedProcessor)(sandboxedJob(sent, lock, call), sent.token, lock.signal);
      } catch (thrown) {
        this.#failed(run, thrown);
        return;
      }
      Promise.resolve(returned).then(
        (value) => this.#done(run, sent.name, value),
        (thrown: unknown) => this.#failed(run, thrown),
      );
    });
  }

  #sessionOf({ job, lock, until }: Message<'run'>): SeenSession {
    if (lock !== undefined) return new SeenSession(job.queueName, lock.slot, this.#buffersOf(lock));
    const session = new SeenSession(job.queueName, 0);
    if (until !== undefined) session.trust(job.fence, until);
    return session;
  }

  #buffersOf({ memory }: SharedLock): SessionBuffers {
    if (memory !== undefined) this.#buffers = { words: memory.words, slots: [memory.block] };
    return this.#buffers as SessionBuffers;
  }

  #done(run: Run, name: string, value: unknown): void {
    if (run.ended) return;
    let text: string;
    try {
      text = encodeResult(name, value);
    } catch (error) {
      // The work has been done, so another attempt would repeat its effects and fail here again.
      this.#failed(run, Object.assign(toError(error), { name: 'UnrecoverableError' }));
      return;
    }
    this.#end(run);
    this.#send({ kind: 'done', run: run.number, value: text, ...this.#fullness() });
  }

  #failed(run: Run, thrown: unknown): void {
    if (run.ended) return;
    this.#end(run);
    this.#send({ kind: 'failed', run: run.number, error: leaving(thrown), ...this.#fullness() });
  }

  #end(run: Run): void {
    run.ended = true;
    run.lock.release();
    if (this.#run === run) this.#run = undefined;
  }

  #fullness(): { full?: true } {
    if (this.#maxHeapBytes === Number.POSITIVE_INFINITY) return {};
    return v8.getHeapStatistics().used_heap_size > this.#maxHeapBytes * FULL ? { full: true } : {};
  }

  async #call(run: Run, method: Call | StepCall, args: unknown[]): Promise<unknown> {
    const given = args.slice(0, args.findLastIndex((each) => each !== undefined) + 1);
    const texts = given.map((each, index) =>
      each === undefined ? null : encode(`Argument ${index + 1} of job.${method}`, each),
    );
    if (run.ended)
      throw new HoldfastError('LOCK_LOST', `job.${method}: the run of job ${run.jobId} is over.`, { jobId: run.jobId });
    const call = (this.#called += 1);
    const replied = new Promise((resolve, reject) => this.#calls.set(call, { resolve, reject }));
    this.#send({ kind: 'call', run: run.number, call, method, args: texts });
    return replied;
  }

  #replied({ call, value, error }: Message<'reply'>): void {
    const waiting = this.#calls.get(call);
    this.#calls.delete(call);
    if (error !== undefined) waiting?.reject(arrived(error));
    else waiting?.resolve(value === undefined ? undefined : decode(value));
  }

  #uncaught(thrown: unknown): void {
    const from = this.#runs.getStore() ?? this.#run;
    this.#send({ kind: 'uncaught', run: from?.number, jobId: from?.jobId, error: leaving(thrown) });
  }
}

function change({ session, lock }: Run, message: Message<'trust' | 'abort'>): void {
  if (message.kind === 'trust') {
    session.trust(lock.fence, message.until);
    return;
  }
  if (message.lost) session.lost();
  lock.cancel(arrived(message.reason));
}

/** ESM and CommonJS, `export default`, `module.exports`, and what compilers make of either. */
function functionOf(module: Record<string, unknown>, file: string): SandboxedProcessor {
  let found: unknown = module;
  for (let depth = 0; depth < 3; depth += 1) {
    if (typeof found === 'function') return found as SandboxedProcessor;
    found = (found as Record<string, unknown> | null | undefined)?.['default'];
  }
  throw new Error(
    `No function is exported in the processor file ${file}. Write: export default async (job, token, signal) => { … }`,
  );
}
