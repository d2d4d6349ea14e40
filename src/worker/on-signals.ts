// Closes workers, and then all else, when the process is asked to end. A process that is PID 1 of a container gets no default action
// for signals, so it must end by `process.exit` and not by sending the signal to itself again.
import { constants } from 'node:os';
import { HoldfastError } from '../errors.js';
import { checkBoolean, checkInteger, invalidOption, MAX_TIMER_MS } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';
import { inTime } from '../runtime/within.js';
import { Worker } from './worker.js';

/** A worker, queue, listener, leader, flow producer, or anything else that can be closed. */
export interface Closable {
  close(): unknown;
}

export interface OnSignalsOptions {
  /** How long running jobs may go on, in ms. Then they are interrupted, and go back to waiting. Default 10,000. */
  timeoutMs?: number;
  /** Default SIGTERM and SIGINT. */
  signals?: NodeJS.Signals[];
  /** Ends the process when all is closed. Default true. With false, the process ends when nothing is left to do. */
  exit?: boolean;
}

const NAMES = new OptionNames<OnSignalsOptions>({ of: 'onSignals', known: { timeoutMs: true, signals: true, exit: true } });

/** How long closing may take beyond `timeoutMs`, in ms: handlers get a second to obey, and the store some time to reply. */
const MARGIN_MS = 5000;

/** The exit code of a process that could not close everything. */
const FAILED = 1;

/**
 * Closes everything at the first signal: workers first, with `timeoutMs`, then the rest. Ends the process with code 0 if all was closed,
 * and with 1 if not. A second signal ends the process at once, with 128 plus the number of the signal; jobs that run then are handed back.
 * Returns a function that removes the handlers.
 */
export function onSignals(closables: Closable | readonly Closable[], options: OnSignalsOptions = {}): () => void {
  const all = checkClosables(Array.isArray(closables) ? closables : [closables]);
  const { timeoutMs = 10_000, signals = ['SIGTERM', 'SIGINT'], exit = true } = NAMES.checked(options);
  checkInteger('timeoutMs', timeoutMs, { max: MAX_TIMER_MS - MARGIN_MS });
  checkBoolean('exit', exit);
  const numbers = checkSignals(signals);
  let closing = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (closing) process.exit(128 + (numbers.get(signal) ?? 0));
    closing = true;
    void closeAll(all, timeoutMs).then((closed) => {
      if (exit) process.exit(closed ? 0 : FAILED);
      if (!closed) process.exitCode = FAILED;
      remove();
    });
  };
  const remove = (): void => {
    for (const signal of numbers.keys()) process.off(signal, onSignal);
  };
  for (const signal of numbers.keys()) process.on(signal, onSignal);
  return remove;
}

/** Returns false if something could not be closed, or not in time. */
async function closeAll(closables: Closable[], timeoutMs: number): Promise<boolean> {
  const workers = closables.filter((each) => each instanceof Worker);
  const others = closables.filter((each) => !(each instanceof Worker));
  const closed = await closeEach(workers, timeoutMs + MARGIN_MS, (worker) => worker.close({ timeoutMs }));
  return (await closeEach(others, MARGIN_MS, (each) => each.close())) && closed;
}

async function closeEach<C extends Closable>(closables: C[], ms: number, close: (each: C) => unknown): Promise<boolean> {
  const late = (): Error => new HoldfastError('TIMEOUT', `It was not closed within ${ms} ms.`);
  const ends = await Promise.allSettled(closables.map(async (each) => inTime(ms, Promise.resolve(close(each)), late)));
  for (const [index, end] of ends.entries()) {
    if (end.status === 'rejected') warn(closables[index] as C, end.reason);
  }
  return ends.every(({ status }) => status === 'fulfilled');
}

function warn(closable: Closable, reason: unknown): void {
  const what = `${closable.constructor?.name ?? 'object'}${'name' in closable ? ` of ${String(closable.name)}` : ''}`;
  const why = reason instanceof Error ? reason.message : String(reason);
  process.emitWarning(`onSignals could not close the ${what}: ${why}`, {
    type: 'HoldfastWarning',
    code: 'HOLDFAST_CLOSE_FAILED',
  });
}

function checkClosables(closables: readonly Closable[]): Closable[] {
  for (const each of closables as readonly (Closable | undefined | null)[]) {
    if (typeof each?.close !== 'function')
      throw invalidOption('closables', each, 'a worker, a queue, or a list of what can be closed');
  }
  return [...closables];
}

/** Returns the numbers of the signals. */
function checkSignals(signals: unknown): Map<NodeJS.Signals, number> {
  const known = constants.signals as Record<string, number>;
  const names: unknown[] = Array.isArray(signals) ? signals : [];
  const isKnown = (name: unknown): name is NodeJS.Signals => typeof name === 'string' && Object.hasOwn(known, name);
  if (names.length === 0 || !names.every(isKnown) || names.some((name) => name === 'SIGKILL' || name === 'SIGSTOP'))
    throw invalidOption('signals', signals, 'a list of signals that a process can handle, such as SIGTERM');
  return new Map(names.map((name) => [name, known[name] ?? 0]));
}
