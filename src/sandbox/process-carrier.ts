// A child of the pool that is a process. It ends with this one: when its channel closes, or on SIGKILL when this process exits.
import { type ChildProcess, fork, type ForkOptions } from 'node:child_process';
import { type Carrier, type CarrierListener, LastLines } from './carrier.js';
import { CHILD_MARK, type ToChild } from './messages.js';
import type { PoolOptions } from './options.js';

const alive = new Set<ChildProcess>();

/** A process in an endless loop does not notice that its channel has closed. */
function killAll(): void {
  for (const child of alive) child.kill('SIGKILL');
}

export class ProcessCarrier implements Carrier {
  readonly ownEnd = undefined;
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #lines = new LastLines();

  constructor(entry: string, options: PoolOptions, listener: CarrierListener) {
    const child = fork(entry, [CHILD_MARK], forkOptionsOf(options));
    this.#child = child;
    this.pid = child.pid ?? 0;
    const { silent, stdio } = options.forkOptions;
    const forwards = silent !== true && stdio === undefined;
    this.#lines.watch(child.stderr, forwards ? process.stderr : undefined);
    child.stdout?.resume();
    this.#track();
    let error: Error | undefined;
    child.on('message', (message: unknown) => listener.message(message));
    child.on('error', (failed) => {
      error = failed;
      // A process that never started has no exit.
      if (child.pid === undefined) ended(null, null);
    });
    // Not `close`: it never comes after this side has closed the channel.
    child.once('exit', (code, signal) => void this.#lines.untilEnd(child.stderr).then(() => ended(code, signal)));
    const ended = (code: number | null, signal: string | null): void => {
      untrack(child);
      const { text: lastLines, sawOutOfMemory } = this.#lines;
      // V8 aborts the process when its heap is full.
      const outOfMemory = sawOutOfMemory && code !== 0;
      listener.exited({ code, signal, outOfMemory, lastLines, ...(error === undefined ? {} : { error }) });
    };
  }

  get title(): string {
    return `process ${this.pid}`;
  }

  get isGone(): boolean {
    const { connected, exitCode, signalCode } = this.#child;
    return !connected || exitCode !== null || signalCode !== null;
  }

  send(message: ToChild): void {
    // The callback gets the error of a channel that is closed; the exit follows.
    if (this.#child.connected) this.#child.send(message, () => undefined);
  }

  dismiss(): void {
    if (this.#child.connected) this.#child.disconnect();
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  #track(): void {
    if (alive.size === 0) process.on('exit', killAll);
    alive.add(this.#child);
  }
}

function untrack(child: ChildProcess): void {
  if (alive.delete(child) && alive.size === 0) process.off('exit', killAll);
}

function forkOptionsOf({ forkOptions, maxMemoryMb }: PoolOptions): ForkOptions {
  // A second process cannot listen on the port of this one's inspector.
  const inherited = process.execArgv.filter((argument) => !argument.startsWith('--inspect'));
  const heap = maxMemoryMb === undefined ? [] : [`--max-old-space-size=${maxMemoryMb}`];
  const stdio: ForkOptions =
    forkOptions.silent === true || forkOptions.stdio !== undefined ? {} : { stdio: ['ignore', 'inherit', 'pipe', 'ipc'] };
  return { ...stdio, ...forkOptions, execArgv: [...(forkOptions.execArgv ?? inherited), ...heap] };
}
