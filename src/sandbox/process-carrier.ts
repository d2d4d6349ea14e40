// A child of the pool that is a process. It ends with this one: when its channel closes, or on SIGKILL when this process exits.
//
// The channel is a pipe with a parser of our own. Node's own channel (`fork`) ends this process, and not the child, if a handler writes
// foreign bytes into it: Node parses them, and acts on its own internal messages, before our code gets them.
import { type ChildProcess, spawn, type StdioOptions } from 'node:child_process';
import type { Duplex } from 'node:stream';
import { Channel } from './channel.js';
import { type Carrier, type CarrierListener, LastLines, untilEnd } from './carrier.js';
import { CHILD_MARK, type ToChild } from './messages.js';
import type { PoolOptions } from './options.js';
import { clearTimeout, setTimeout } from '../runtime/timers.js';

const alive = new Set<ChildProcess>();

/** A process in an endless loop does not notice that its channel has closed. */
function killAll(): void {
  for (const child of alive) child.kill('SIGKILL');
}

/**
 * Signals that a terminal or a supervisor may send to the whole process group. While this process has a listener for one of them, its children
 * ignore it: this process decides what becomes of their jobs.
 */
const GROUP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** This process handles the signal and goes on. A child that has just been started may not ignore the signal yet. */
export function isShared(signal: string | null): boolean {
  return signal !== null && GROUP_SIGNALS.includes(signal) && process.listenerCount(signal) > 0;
}

/** A process whose channel is closed may take this long to end by itself. */
const EXIT_MS = 1000;

export class ProcessCarrier implements Carrier {
  readonly ownEnd = undefined;
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #channel: Channel | undefined;
  readonly #lines = new LastLines();
  #ignored: readonly string[] = [];
  #error: Error | undefined;
  #cutOff: NodeJS.Timeout | undefined;

  constructor(entry: string, options: PoolOptions, listener: CarrierListener) {
    const { stdio, channelAt } = stdioOf(options);
    const child = spawn(...commandOf(entry, options, channelAt), { ...options.forkOptions, stdio });
    this.#child = child;
    this.pid = child.pid ?? 0;
    const { silent, stdio: given } = options.forkOptions;
    const forwards = silent !== true && given === undefined;
    this.#lines.watch(child.stderr, forwards ? process.stderr : undefined);
    child.stdout?.resume();
    this.#track();
    // Not there if the process could not be started.
    const pipe = child.stdio[channelAt] as Duplex | undefined;
    if (pipe !== undefined) {
      this.#channel = new Channel(pipe, {
        message: (message) => listener.message(message),
        closed: () => {
          this.#cutOff = setTimeout(() => this.#end(new Error('it closed its channel to the worker')), EXIT_MS);
        },
        broken: (cause) => this.#end(new Error('it wrote bytes into its channel to the worker that are no message', { cause })),
      });
    }
    child.on('error', (error) => {
      this.#error ??= error;
      // A process that never started has no exit.
      if (child.pid === undefined) ended(null, null);
    });
    // Not `close`: another process may have inherited a stream and keep it open.
    child.once('exit', (code, signal) => {
      clearTimeout(this.#cutOff);
      const streams = [child.stderr, pipe ?? null].map(untilEnd);
      void Promise.all(streams).then(() => ended(code, signal));
    });
    const ended = (code: number | null, signal: string | null): void => {
      untrack(child);
      pipe?.destroy();
      const { text: lastLines, sawOutOfMemory } = this.#lines;
      // V8 aborts the process when its heap is full.
      const outOfMemory = sawOutOfMemory && code !== 0;
      listener.exited({ code, signal, outOfMemory, lastLines, ...(this.#error === undefined ? {} : { error: this.#error }) });
    };
  }

  get title(): string {
    return `process ${this.pid}`;
  }

  get isGone(): boolean {
    const { exitCode, signalCode } = this.#child;
    return this.#channel?.isOpen !== true || exitCode !== null || signalCode !== null;
  }

  send(message: ToChild): void {
    if (message.kind === 'load' || message.kind === 'run') this.#shareSignals();
    this.#channel?.send(message);
  }

  dismiss(): void {
    this.#channel?.end();
  }

  kill(signal: NodeJS.Signals): void {
    if (this.#ignored.includes(signal)) this.dismiss();
    else this.#child.kill(signal);
  }

  #shareSignals(): void {
    const ignore = GROUP_SIGNALS.filter(isShared);
    if (ignore.join() === this.#ignored.join()) return;
    this.#ignored = ignore;
    this.#channel?.send({ kind: 'signals', ignore });
  }

  /** Whatever the handler does, no outcome can arrive any more. */
  #end(error: Error): void {
    this.#error ??= error;
    this.#child.kill('SIGKILL');
  }

  #track(): void {
    if (alive.size === 0) process.on('exit', killAll);
    alive.add(this.#child);
  }
}

function untrack(child: ChildProcess): void {
  if (alive.delete(child) && alive.size === 0) process.off('exit', killAll);
}

function commandOf(entry: string, { forkOptions, maxMemoryMb }: PoolOptions, channelAt: number): [string, string[]] {
  // A second process cannot listen on the port of this one's inspector.
  const inherited = process.execArgv.filter((argument) => !argument.startsWith('--inspect'));
  const heap = maxMemoryMb === undefined ? [] : [`--max-old-space-size=${maxMemoryMb}`];
  const { execPath = process.execPath, execArgv = inherited } = forkOptions;
  return [execPath, [...execArgv, ...heap, entry, CHILD_MARK, String(channelAt)]];
}

/** As `child_process.fork` understands it, with a pipe in the place of its channel. */
function stdioOf({ forkOptions: { silent, stdio } }: PoolOptions): { stdio: StdioOptions; channelAt: number } {
  const one = typeof stdio === 'string' ? stdio : 'pipe';
  const given = Array.isArray(stdio)
    ? [...stdio]
    : silent === true || stdio !== undefined
      ? [one, one, one]
      : ['ignore', 'inherit', 'pipe'];
  const at = given.indexOf('ipc');
  const channelAt = at >= 0 ? at : Math.max(3, given.length);
  given[channelAt] = 'pipe';
  return { stdio: given as StdioOptions, channelAt };
}
