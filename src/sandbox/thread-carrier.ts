// A child of the pool that is a thread of this process. Its messages go through a port of their own: a handler can close its `parentPort`, or
// send through it what it likes.
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';
import { type Carrier, type CarrierListener, LastLines } from './carrier.js';
import { CHILD_MARK, type ToChild } from './messages.js';
import type { PoolOptions } from './options.js';

export class ThreadCarrier implements Carrier {
  readonly ownEnd = new Int32Array(new SharedArrayBuffer(8));
  readonly pid: number;
  readonly #thread: Worker;
  readonly #port: MessagePort;
  readonly #lines = new LastLines();
  #error: Error | undefined;

  constructor(entry: string, { threadOptions, maxMemoryMb }: PoolOptions, listener: CarrierListener) {
    const limits = maxMemoryMb === undefined ? {} : { resourceLimits: { maxOldGenerationSizeMb: maxMemoryMb } };
    const thread = new Worker(entry, {
      ...limits,
      ...threadOptions,
      argv: [CHILD_MARK, ...((threadOptions.argv as string[] | undefined) ?? [])],
      stderr: true,
    });
    this.#thread = thread;
    this.pid = thread.threadId;
    this.#lines.watch(thread.stderr, threadOptions.stderr === true ? undefined : process.stderr);
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    port1.on('message', (message: unknown) => listener.message(message));
    thread.postMessage(port2, [port2]);
    thread.on('error', (error) => {
      this.#error = error;
    });
    thread.once('exit', (code) => {
      for (let left = receiveMessageOnPort(port1); left !== undefined; left = receiveMessageOnPort(port1))
        listener.message(left.message);
      port1.close();
      const outOfMemory = (this.#error as NodeJS.ErrnoException | undefined)?.code === 'ERR_WORKER_OUT_OF_MEMORY';
      const failed = this.#error === undefined ? {} : { error: this.#error };
      listener.exited({ code, signal: null, outOfMemory, lastLines: this.#lines.text, ...failed });
    });
  }

  get title(): string {
    return `thread ${this.pid}`;
  }

  /** Node sets the number of a thread that has ended to -1. */
  get isGone(): boolean {
    return this.#thread.threadId === -1;
  }

  send(message: ToChild): void {
    this.#port.postMessage(message);
  }

  dismiss(): void {
    void this.#thread.terminate();
  }

  kill(): void {
    void this.#thread.terminate();
  }
}
