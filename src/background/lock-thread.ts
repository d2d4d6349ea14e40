// The worker_threads side of ThreadRenewer: starting and stopping the thread, and the hand-back when the process exits.
import type { Worker } from 'node:worker_threads';
import { toError } from '../errors.js';
import type { Clock } from '../runtime/clock.js';
import type { FromThread, ThreadData, ToThread } from './messages.js';
import { startThread, withAdvice } from './thread-file.js';
import { Beat } from './watchdog.js';
import { setImmediate } from '../runtime/timers.js';

export interface LockThreadReports {
  onMessage(message: FromThread): void;
  /** It could not start, or ended without being asked to. Told once. */
  onEnd(error: Error, wasReady: boolean): void;
}

/** A process that exits waits this long for its jobs to be handed back. */
const HAND_BACK_MS = 300;
/** Renewing takes little; a thread that wants more is broken and is better restarted. */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 4, stackSizeMb: 2 };

let crashed = false;
const noteCrash = (): void => {
  crashed = true;
};

export class LockThread {
  readonly #entryFile: string | undefined;
  readonly #reports: LockThreadReports;
  readonly #beat: Beat;
  readonly #handedBack = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  readonly #onExit = (code: number): void => this.#handBack(code);
  #queued: ToThread[] = [];
  #worker: Worker | undefined;
  #ready = false;
  #ended = false;
  #waiters = 0;

  constructor(entryFile: string | undefined, clock: Clock, reports: LockThreadReports) {
    this.#entryFile = entryFile;
    this.#reports = reports;
    this.#beat = new Beat(clock);
  }

  start(): void {
    try {
      const workerData: ThreadData = { beat: this.#beat.buffer, handedBack: this.#handedBack };
      // No execArgv: a loader or inspector flag of the application has no business here.
      const worker = startThread(this.#entryFile, {
        workerData,
        name: 'holdfast-locks',
        execArgv: [],
        resourceLimits: RESOURCE_LIMITS,
      });
      this.#worker = worker;
      worker.on('message', (message: FromThread) => this.#reports.onMessage(message));
      worker.on('messageerror', (error) => this.#end(error));
      worker.on('error', (error) => this.#end(withAdvice(toError(error))));
      worker.on('exit', (code) => this.#end(new Error(`it exited with code ${code}`)));
      // Only after the listeners: attaching one refs the thread again, and the process would never exit.
      worker.unref();
      process.on('exit', this.#onExit);
      process.on('uncaughtExceptionMonitor', noteCrash);
      for (const message of this.#queued) worker.postMessage(message);
      this.#queued = [];
    } catch (error) {
      // Told later, like all other ways to fail: nobody expects an answer from inside the call.
      setImmediate(() => this.#end(toError(error)));
    }
  }

  send(message: ToThread): void {
    if (this.#worker === undefined) this.#queued.push(message);
    else if (!this.#ended) this.#worker.postMessage(message);
  }

  markReady(): void {
    this.#ready = true;
  }

  /** While somebody waits for an answer of the thread, it keeps the process alive. */
  async awaited(answer: Promise<void>): Promise<void> {
    this.#waiters += 1;
    this.#worker?.ref();
    try {
      await answer;
    } finally {
      this.#waiters -= 1;
      if (this.#waiters === 0) this.#worker?.unref();
    }
  }

  async stop(): Promise<void> {
    this.#ended = true;
    this.#cleanUp();
    await this.#worker?.terminate();
  }

  #end(error: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#cleanUp();
    void this.#worker?.terminate();
    this.#reports.onEnd(error, this.#ready);
  }

  #cleanUp(): void {
    this.#beat.stop();
    process.off('exit', this.#onExit);
    process.off('uncaughtExceptionMonitor', noteCrash);
  }

  /**
   * The loop no longer turns, but the thread does. Jobs of a process that ends on purpose are handed back for free; those
   * of one that dies of an exception are charged, or a job that kills its process would do so for ever. An application that
   * survives exceptions and ends later with code 0 did not die of them.
   */
  #handBack(code: number): void {
    if (this.#ended || this.#worker === undefined) return;
    this.#worker.postMessage({ type: 'handBack', charged: crashed && code !== 0 } satisfies ToThread);
    Atomics.wait(new Int32Array(this.#handedBack), 0, 0, HAND_BACK_MS);
  }
}
