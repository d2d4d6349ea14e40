// Interrupts a run after a named step, so that a test sees what the next run does with the recorded steps.
import { HoldfastError } from '../errors.js';
import { type ContextSource, contextOf } from '../handle/job-context.js';

/**
 * Ends the next run of this worker that records the step, right after the record, as a shutdown would: the handler gets an error, and
 * the job goes back to waiting. Neither an attempt nor a stall counts. Resolves when that has happened; the worker then runs the job again.
 */
export function interruptAfterStep(worker: ContextSource, name: string): Promise<void> {
  const context = contextOf(worker);
  if (context.interrupt === undefined) {
    throw new HoldfastError('INVALID_OPTION', 'interruptAfterStep needs a Worker that runs jobs.', { option: 'worker' });
  }
  const { interrupt, stepRecorded: before } = context;
  return new Promise((resolve) => {
    context.stepRecorded = (token, recorded) => {
      if (recorded !== name) return;
      context.stepRecorded = before;
      const error = new HoldfastError('SHUTDOWN', `interrupted after step "${name}"`);
      interrupt(token, error);
      resolve();
      throw error;
    };
  });
}
