// Closes a worker: no more claims, then the end of the running jobs, their settles, the session, the store. With `timeoutMs` the jobs that
// still run then are interrupted and handed back. With `force` the wait ends at once, and the rest goes on in the background. A step that
// fails is reported and never keeps the next one from being made.
import { HoldfastError, toError } from '../errors.js';
import { checkInteger, MAX_TIMER_MS } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';
import { within } from '../runtime/within.js';
import { warnIfCloseWaits } from './close-warning.js';
import type { WorkerContext } from './context.js';
import type { Stations } from './stations.js';

export interface CloseOptions {
  /** How long running jobs may go on, in ms. Those that still run then are interrupted, and go back to waiting. Default: without limit. */
  timeoutMs?: number;
}

const CLOSE_NAMES = new OptionNames<CloseOptions>({ of: 'close', known: { timeoutMs: true } });

/** How long an interrupted handler may go on before its job is handed back without it, in ms. */
const OBEY_MS = 1000;

/** Reads the argument of `close`: BullMQ's `force`, or options. */
export function closeTerms(given: boolean | CloseOptions): { force: boolean; timeoutMs?: number } {
  if (typeof given !== 'object' || given === null) return { force: Boolean(given) };
  const { timeoutMs } = CLOSE_NAMES.checked(given);
  if (timeoutMs === undefined) return { force: false };
  return { force: false, timeoutMs: checkInteger('timeoutMs', timeoutMs, { max: MAX_TIMER_MS }) };
}

export async function shutDown(stations: Stations): Promise<void> {
  const { context, storeLoop, manual, childPool } = stations;
  const { name, emitter, lifecycle, calls, table, monitor, health, opts } = context;
  emitter.emit('closing', 'closing queue');
  lifecycle.foundRenewer();
  stopTaking(stations);
  manual.stop();
  childPool?.stopWaiting();
  storeLoop.detach();
  // A store that has not replied for a whole lock duration has let the locks expire; waiting longer saves nothing.
  calls.close(opts.lockDuration);
  const endWarning = warnIfCloseWaits(name, table);
  void lifecycle.due.then(() => interrupt(stations));
  // With `force` the closing ends here, while the rest goes on in the background.
  await Promise.race([letGo(stations), lifecycle.forced.then(() => abandon(stations))]);
  endWarning();
  monitor?.setRunning(false);
  health.stop();
  lifecycle.closed();
  emitter.emit('closed');
}

/** Claims no more jobs, and hands back those that have not begun. */
export function stopTaking({ storeLoop, runs }: Stations): void {
  storeLoop.stopClaiming();
  runs?.handBackAhead();
}

async function letGo({ context, storeLoop, manual, childPool }: Stations): Promise<void> {
  const { calls, table, owner } = context;
  // Calls under way must end first.
  await calls.idle();
  await manual.handBack();
  await storeLoop.idle();
  await childPool?.close();
  await calls.idle();
  calls.end();
  table.stop();
  await step(context, owner.close());
  await step(context, context.release());
}

/**
 * Aborts the handlers. Each job goes back when its handler ends, so that no two handlers run at once. A handler that does not end gets
 * OBEY_MS: then its lock is given up, and its job goes back without it.
 */
async function interrupt({ context, storeLoop, runs }: Stations): Promise<void> {
  withdrawAll(context);
  await within(OBEY_MS, storeLoop.idle());
  runs?.giveUp((jobId) => shutdownError(context.name, jobId));
}

async function abandon({ context, childPool }: Stations): Promise<void> {
  withdrawAll(context);
  await step(context, context.owner.retire());
  await childPool?.close();
}

function withdrawAll({ name, table }: WorkerContext): void {
  for (const lock of table.locks()) lock.withdraw(shutdownError(name, lock.jobId));
}

function shutdownError(queue: string, jobId: string): HoldfastError {
  const message = `The worker of ${queue} shuts down: stop, and job ${jobId} goes back to waiting.`;
  return new HoldfastError('SHUTDOWN', message, { queue, jobId });
}

/** A step that fails or hangs is reported, and the next step is still made. */
async function step({ calls, emitter }: WorkerContext, made: Promise<void>): Promise<void> {
  try {
    await calls.withTimeout(made, true);
  } catch (error) {
    emitter.emit('error', toError(error));
  }
}
