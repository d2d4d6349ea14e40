// Messages between a worker and a process of its sandbox, over a pipe: a line of JSON each. A handler can write any bytes into the pipe, so
// every line from a process is hostile. A line that is not JSON, or that never ends, breaks the channel; it is never skipped, because it may
// have been mixed with a message of ours.
import type { Duplex } from 'node:stream';
import { toError } from '../errors.js';

export interface ChannelListener {
  message(message: unknown): void;
  /** The other side has closed the pipe. Called once, after the last message. */
  closed(): void;
  /** The other side has written what is not a message. No further message comes. */
  broken(error: Error): void;
}

const NEWLINE = 10;
/** In bytes. No store takes a job or a result that is nearly as large. */
const LONGEST_LINE = 2 ** 28;

export class Channel {
  readonly #pipe: Duplex;
  readonly #listener: ChannelListener;
  /** The beginning of a line whose end has not arrived. */
  #begun: Buffer[] = [];
  #begunBytes = 0;
  #isOpen = true;

  constructor(pipe: Duplex, listener: ChannelListener) {
    this.#pipe = pipe;
    this.#listener = listener;
    pipe.on('data', (chunk: Buffer) => this.#take(chunk));
    // `close` follows.
    pipe.on('error', () => undefined);
    for (const event of ['end', 'close']) pipe.once(event, () => this.#close());
  }

  /** False as soon as one side has ended it. */
  get isOpen(): boolean {
    return this.#isOpen && !this.#pipe.writableEnded;
  }

  /** Never throws: after the end, the message is lost. */
  send(message: object): void {
    if (this.isOpen) this.#pipe.write(`${JSON.stringify(message)}\n`);
  }

  /** The other side sees the end when it has read what was sent. What it still sends is read. */
  end(): void {
    this.#pipe.end();
  }

  #take(chunk: Buffer): void {
    let first = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, first)) {
      this.#begun.push(chunk.subarray(first, end));
      first = end + 1;
      if (!this.#read()) return;
    }
    if (first === chunk.length) return;
    this.#begun.push(chunk.subarray(first));
    this.#begunBytes += chunk.length - first;
    if (this.#begunBytes > LONGEST_LINE) this.#break(new Error(`a line of more than ${LONGEST_LINE} bytes`));
  }

  /** Returns false if the line breaks the channel. */
  #read(): boolean {
    const line = this.#begun.length === 1 ? this.#begun[0] : Buffer.concat(this.#begun);
    this.#begun = [];
    this.#begunBytes = 0;
    let message: unknown;
    try {
      message = JSON.parse(String(line));
    } catch (error) {
      this.#break(toError(error));
      return false;
    }
    this.#listener.message(message);
    return this.#isOpen;
  }

  #close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#listener.closed();
  }

  #break(error: Error): void {
    this.#begun = [];
    this.#isOpen = false;
    this.#pipe.destroy();
    this.#listener.broken(error);
  }
}
