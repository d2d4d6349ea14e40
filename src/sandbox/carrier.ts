// A thread or a process, whichever carries a child of the pool. The rest of the sandbox does not know which.
import type { Readable } from 'node:stream';
import { sleep } from '../runtime/timers.js';
import type { ToChild } from './messages.js';

export interface CarrierExit {
  /** null if a signal ended it. */
  code: number | null;
  signal: string | null;
  /** It ran out of memory. */
  outOfMemory: boolean;
  /** What it could not be started or go on with. */
  error?: Error;
  /** The last lines that it wrote to stderr. */
  lastLines: string;
}

export interface CarrierListener {
  message(message: unknown): void;
  /** Called once, after the last message. */
  exited(exit: CarrierExit): void;
}

export interface Carrier {
  /** `thread 3` or `process 4711`, for people. */
  readonly title: string;
  /** The process id; for a thread, its number. */
  readonly pid: number;
  /** The words in which a thread reads the own end of a lock. Undefined: a process, which gets messages instead. */
  readonly ownEnd: Int32Array | undefined;
  readonly isGone: boolean;
  /** Never throws: to a child that has ended, the message is lost. */
  send(message: ToChild): void;
  /** Asks an idle child to end by itself. */
  dismiss(): void;
  /** Ends it. A process may take its time with signals other than SIGKILL. */
  kill(signal: NodeJS.Signals): void;
}

const KEPT_CHARACTERS = 4000;
const KEPT_LINES = 10;
/** Addresses of native code, of which a crash writes a page. */
const NATIVE_FRAME = /^\s*\d+: 0x|^----- Native stack trace/;
const OUT_OF_MEMORY = /JavaScript heap out of memory/;
/** How long the rest of a stream may take to arrive after the exit. */
const END_MS = 200;

/** Keeps the last lines of a stream, and passes all of it on. */
export class LastLines {
  #text = '';
  sawOutOfMemory = false;

  watch(stream: Readable | null, to: NodeJS.WritableStream | undefined): void {
    stream?.on('data', (chunk: Buffer | string) => {
      to?.write(chunk);
      this.#text = (this.#text + String(chunk)).slice(-KEPT_CHARACTERS);
      this.sawOutOfMemory ||= OUT_OF_MEMORY.test(this.#text);
    });
  }

  get text(): string {
    const lines = this.#text.split('\n').filter((line) => line.trim() !== '' && !NATIVE_FRAME.test(line));
    return lines.slice(-KEPT_LINES).join('\n').trim();
  }
}

/** Resolves when all that was written has been read. Another process may have inherited the stream and keep it open: then soon. */
export async function untilEnd(stream: Readable | null): Promise<void> {
  if (stream === null || stream.readableEnded || stream.destroyed) return;
  const ended = new AbortController();
  for (const event of ['end', 'close']) stream.once(event, () => ended.abort());
  await sleep(END_MS, ended.signal);
}
