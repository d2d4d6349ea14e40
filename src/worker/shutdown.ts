// Closes a worker: no more claims, then the end of the running jobs, their settles, the session, the store. With `force` the wait ends at
// once, and the rest goes on in the background. A step that fails is reported and never keeps the next one from being made.
import { HoldfastError, toError } from '../errors.js';
import { warnIfCloseWaits } from './close-warning.js';
import type { WorkerContext } from './context.js';
import type { Stations } from './stations.js';

export async function shutDown(stations: Stations): Promise<void> {
  const { context, storeLoop, manual } = stations;
  const { name, emitter, lifecycle, calls, table, monitor, health, opts } = context;
  emitter.emit('closing', 'closing queue');
  lifecycle.foundRenewer();
  stopTaking(stations);
  manual.stop();
  storeLoop.detach();
  // A store that has not replied for a whole lock duration has let the locks expire; waiting longer saves nothing.
  calls.close(opts.lockDuration);
  const endWarning = warnIfCloseWaits(name, table);
  // With `force` the closing ends here, while the rest goes on in the background.
  await Promise.race([letGo(stations), lifecycle.forced.then(() => abandon(context))]);
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

async function letGo({ context, storeLoop, manual }: Stations): Promise<void> {
  const { calls, table, owner } = context;
  // Calls under way must end first.
  await calls.idle();
  await manual.handBack();
  await storeLoop.idle();
  await calls.idle();
  calls.end();
  table.stop();
  await step(context, owner.close());
  await step(context, context.release());
}

async function abandon(context: WorkerContext): Promise<void> {
  const { name, table, owner } = context;
  for (const lock of table.locks()) {
    const message = `The worker of ${name} shuts down: stop, and job ${lock.jobId} goes back to waiting.`;
    lock.withdraw(new HoldfastError('SHUTDOWN', message, { queue: name, jobId: lock.jobId }));
  }
  await step(context, owner.retire());
}

/** A step that fails or hangs is reported, and the next step is still made. */
async function step({ calls, emitter }: WorkerContext, made: Promise<void>): Promise<void> {
  try {
    await calls.withTimeout(made, true);
  } catch (error) {
    emitter.emit('error', toError(error));
  }
}
