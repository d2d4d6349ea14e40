// Why a job with children cannot complete. Programs written for BullMQ match these texts.
import { HoldfastError } from '../errors.js';
import type { SettleStatus } from './outcome.js';

/** `action`: BullMQ's name of the step that was refused. */
export function refusedByChildren(
  jobId: string,
  status: Extract<SettleStatus, 'pending' | 'unsuccessful'>,
  action: string,
  queue: string,
): HoldfastError {
  if (status === 'pending') {
    return new HoldfastError('CHILDREN_PENDING', `Job ${jobId} has pending dependencies. ${action}`, { jobId, queue });
  }
  const message = `Cannot complete job ${jobId} because it has at least one failed child. ${action}`;
  return new HoldfastError('CHILDREN_FAILED', message, { jobId, queue });
}
