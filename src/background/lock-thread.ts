// The worker_threads side of ThreadRenewer: starts and stops the thread, and hands jobs back when the process exits.
import type { Worker } from 'node:worker_threads';
import { toError } from '../errors.js';
import type { Clock } from '../runtime/clock.js';
import { debuggedNow, noStackReason } from './debugged.js';
import type { FromThread, ThreadData, ToThread } from './messages.js';
import { startThread, withAdvice } from './thread-file.js';
import { Beat } from './watchdog.js';
import { setImmediate } from '../runtime/timers.js';

export interface LockThreadReports {
  onMessage(message: FromThread): void;
  /** The thread could not start, or ended without being asked to. Reported once. */
  onEnd(error: Error, wasReady: boolean): void;
}

/** How long an exiting process waits for its jobs to be handed back, in ms. */
const HAND_BACK_MS = 300;
/** Renewing needs little memory. A thread that needs more is broken, and a restart is better. */
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
    this.#beat = new Beat(clock, debuggedNow());
  }

  start(): void {
    try {
      const workerData: ThreadData = { beat: this.#beat.buffer, handedBack: this.#handedBack, noStack: noStackReason() };
      // No execArgv: a loader or inspector flag of the application is not meant for this thread.
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
      // After the listeners: attaching a listener refs the thread again, and then the process would never exit.
      worker.unref();
      process.on('exit', this.#onExit);
      process.on('uncaughtExceptionMonitor', noteCrash);
      for (const message of this.#queued) worker.postMessage(message);
      this.#queued = [];
    } catch (error) {
      // Reported later, like every other failure: the caller of `start` does not expect a report during the call.
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

  /** Keeps the process alive while a caller waits for a reply of the thread. */
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
   * Runs at process exit: the event loop no longer turns, but the thread does. If the process ends on purpose, its jobs are handed back
   * without a stall. If the process dies of an exception, the hand-back counts as a stall, or a job that kills its process would do so
   * for ever. An application that survives exceptions and ends later with code 0 did not die of them.
   */
  #handBack(code: number): void {
    if (this.#ended || this.#worker === undefined) return;
    const how = crashed && code !== 0 ? 'crashed' : 'closed';
    this.#worker.postMessage({ type: 'handBack', how } satisfies ToThread);
    Atomics.wait(new Int32Array(this.#handedBack), 0, 0, HAND_BACK_MS);
  }
}
