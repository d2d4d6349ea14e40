// One child of the pool: a thread or process with the user's file loaded, which runs one job at a time. A run ends here in one of three
// ways: the handler ends, the child ends, or the handler goes on after its signal was aborted, and the child is ended. The run's promise
// settles only when the handler can do nothing more: after its end, or after the end of the child.
import { HoldfastError, toError } from '../errors.js';
import type { Job } from '../handle/job.js';
import { deferred } from '../runtime/deferred.js';
import { clearTimeout, setTimeout } from '../runtime/timers.js';
import type { Carrier, CarrierExit } from './carrier.js';
import { ChildRun } from './child-run.js';
import { arrived } from './crossing-error.js';
import { diedError, unloadableError } from './ends.js';
import type { FromChild } from './messages.js';
import type { PoolOptions } from './options.js';
import { ProcessCarrier } from './process-carrier.js';
import { ThreadCarrier } from './thread-carrier.js';

/** How long a process may take to end after SIGTERM, or after its channel was closed. */
const KILL_AFTER_MS = 1000;

export interface ChildListener {
  /** A handler has thrown after its run was over. */
  threwLate(error: HoldfastError): void;
  /** The child must get no further job. */
  retired(child: Child): void;
  ended(child: Child): void;
}

export class Child {
  readonly processFile: string;
  /** As in BullMQ: null until the child has ended. */
  exitCode: number | null = null;
  signalCode: string | null = null;
  /** Rejects with the reason if the file cannot be loaded. */
  readonly loaded: Promise<void>;
  /** Resolves when the thread or process is gone. */
  readonly gone: Promise<void>;
  /** When its last run ended, on the monotonic clock. */
  idleSince = 0;
  isRetired = false;
  jobs = 0;
  readonly #carrier: Carrier;
  readonly #options: PoolOptions;
  readonly #listener: ChildListener;
  readonly #load = deferred();
  readonly #exit = deferred();
  readonly #loadTimer: NodeJS.Timeout;
  #killTimer: NodeJS.Timeout | undefined;
  #hasLoaded = false;
  #hasExited = false;
  #run: ChildRun | undefined;

  /** Throws if the thread or process cannot be started. */
  constructor(entry: string, file: string, options: PoolOptions, listener: ChildListener) {
    this.processFile = file;
    this.#options = options;
    this.#listener = listener;
    this.loaded = this.#load.promise;
    this.gone = this.#exit.promise;
    const listeners = {
      message: (message: unknown) => this.#receive(message),
      exited: (exit: CarrierExit) => this.#exited(exit),
    };
    this.#carrier = options.threads
      ? new ThreadCarrier(entry, options, listeners)
      : new ProcessCarrier(entry, options, listeners);
    const { ownEnd } = this.#carrier;
    const { maxMemoryMb, maxLoadMs } = options;
    this.#loadTimer = setTimeout(() => this.#unloadable(new Error(`it took longer than ${maxLoadMs} ms`)), maxLoadMs);
    this.#carrier.send({
      kind: 'load',
      file,
      ...(ownEnd === undefined ? {} : { ownEnd: ownEnd.buffer as SharedArrayBuffer }),
      ...(maxMemoryMb === undefined ? {} : { maxHeapBytes: maxMemoryMb * 2 ** 20 }),
    });
  }

  get pid(): number {
    return this.#carrier.pid;
  }

  get isBusy(): boolean {
    return this.#run !== undefined;
  }

  /** True as soon as it is known, which may be before all that the child wrote has been read. */
  hasProcessExited(): boolean {
    return this.#hasExited || this.#carrier.isGone;
  }

  /** Resolves with the value of the handler. */
  run(job: Job, signal: AbortSignal | undefined): Promise<unknown> {
    this.jobs += 1;
    return new Promise((resolve, reject) => {
      const { graceMs } = this.#options;
      const run = new ChildRun({ number: this.jobs, job, carrier: this.#carrier, graceMs, onStuck: () => void this.end() });
      run.settle = (settle) => {
        this.#run = undefined;
        settle(resolve, reject);
      };
      this.#run = run;
      run.begin(signal);
    });
  }

  /** A handler whose signal is aborted gets at most this long from now. */
  hurry(ms: number): void {
    this.#run?.hurry(ms);
  }

  /** Ends the child, whatever it does. */
  end(): Promise<void> {
    if (this.isBusy || !this.#hasLoaded) this.#carrier.kill('SIGTERM');
    else this.#carrier.dismiss();
    this.isRetired = true;
    this.#killTimer ??= setTimeout(() => this.#carrier.kill('SIGKILL'), KILL_AFTER_MS);
    if (this.#hasExited) clearTimeout(this.#killTimer);
    return this.gone;
  }

  /** As in BullMQ. A thread ends at once, whatever the signal. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (this.#hasExited) return;
    this.#carrier.kill(signal);
    await this.gone;
  }

  /** A handler shares the channel and may send anything through it. What is not one of our messages must not harm the worker. */
  #receive(message: unknown): void {
    try {
      if (typeof message === 'object' && message !== null) this.#take(message as FromChild);
    } catch {
      // A handler sent this. It has the shape of one of our messages.
    }
  }

  #take(message: FromChild): void {
    const { kind } = message;
    if (kind === 'loaded') this.#isLoaded();
    else if (kind === 'unloadable') this.#unloadable(arrived(message.error));
    else if (kind === 'uncaught') this.#uncaught(message);
    else if (kind === 'call') void this.#serve(message);
    else if (message.run === this.#run?.number) {
      if (message.full === true) this.isRetired = true;
      this.#run.ended(message);
    }
  }

  #isLoaded(): void {
    clearTimeout(this.#loadTimer);
    this.#hasLoaded = true;
    this.#load.resolve();
  }

  #unloadable(error: Error): void {
    clearTimeout(this.#loadTimer);
    this.#load.reject(unloadableError(this.processFile, error));
    void this.end();
  }

  async #serve(message: Extract<FromChild, { kind: 'call' }>): Promise<void> {
    this.#carrier.send(await ChildRun.answer(this.#run, message));
  }

  /** The code that threw may be half done, so the child takes no further job. */
  #uncaught({ run, jobId, error }: Extract<FromChild, { kind: 'uncaught' }>): void {
    const thrown = arrived(error);
    if (!this.#hasLoaded) {
      this.#unloadable(thrown);
    } else if (this.#run !== undefined && run === this.#run.number) {
      // Its handler may still be running: the job must not be settled before the child has ended.
      this.#run.doomed ??= thrown;
      void this.end();
    } else {
      const what = jobId === undefined ? 'a job' : `job ${jobId}`;
      const message = `The handler of ${what} threw after its run was over: ${thrown.message}. The job keeps its outcome. Await all that the handler starts.`;
      this.isRetired = true;
      this.#listener.threwLate(
        new HoldfastError('LATE_ERROR', message, { cause: thrown, ...(jobId === undefined ? {} : { jobId }) }),
      );
      this.#listener.retired(this);
    }
  }

  #exited(exit: CarrierExit): void {
    this.#hasExited = true;
    this.isRetired = true;
    this.exitCode = exit.code;
    this.signalCode = exit.signal;
    clearTimeout(this.#loadTimer);
    clearTimeout(this.#killTimer);
    this.#load.reject(unloadableError(this.processFile, exit.error ?? new Error(diedError(this.#carrier.title, exit).message)));
    const run = this.#run;
    run?.died(diedError(this.#carrier.title, exit, run.job.id));
    this.#listener.ended(this);
    this.#exit.resolve();
  }
}

/** Starts a child. Its `loaded` says how that went; a child that cannot be started at all is returned as the reason. */
export function startChild(entry: string, file: string, options: PoolOptions, listener: ChildListener): Child | HoldfastError {
  try {
    return new Child(entry, file, options, listener);
  } catch (error) {
    return unloadableError(file, toError(error));
  }
}
