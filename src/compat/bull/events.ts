// The events of a Bull queue: those of this instance, and the `global:…` events of all instances from the store's event log.
import type { QueueEventsMap } from '../../events/event-map.js';
import type { QueueEvents } from '../../events/queue-events.js';
import type { Any } from '../../job/typing.js';

/** `cancel` aborts the handler's signal (`job.lock.signal`), which ends early what waits for it. */
export type JobPromise = Promise<unknown> & { cancel(): void };

/** `J` is the job type that listeners get. */
export type BullEvents<J> = {
  active: [job: J, jobPromise: JobPromise, prev: string];
  completed: [job: J, result: Any, prev: string];
  failed: [job: J, error: Error, prev: string];
  progress: [job: J, progress: Any];
  stalled: [job: J];
  /** The lock was lost, or a renewal failed and is retried. */
  'lock-extension-failed': [job: J, error: Error];
  waiting: [jobId: string, prev: null];
  duplicated: [jobId: string];
  removed: [job: J];
  cleaned: [jobIds: string[], type: string];
  drained: [];
  paused: [];
  resumed: [];
  error: [error: Error];
  'global:active': [jobId: string, prev: string];
  'global:completed': [jobId: string, result: string, prev: string];
  'global:failed': [jobId: string, reason: string, prev: string];
  'global:progress': [jobId: string, progress: Any];
  'global:stalled': [jobId: string];
  'global:waiting': [jobId: string, prev: null];
  'global:delayed': [jobId: string, delay: number];
  'global:duplicated': [jobId: string];
  'global:removed': [jobId: string];
  'global:drained': [];
  'global:paused': [];
  'global:resumed': [];
};

type Logged = keyof typeof ARGUMENTS;

/** Convert the arguments of QueueEvents to Bull's. A result arrives as JSON text, as in Bull. */
const ARGUMENTS = {
  active: ([{ jobId }]: QueueEventsMap['active']) => [jobId, 'waiting'],
  completed: ([{ jobId, returnvalue }]: QueueEventsMap['completed']) => [jobId, JSON.stringify(returnvalue), 'active'],
  failed: ([{ jobId, failedReason }]: QueueEventsMap['failed']) => [jobId, failedReason, 'active'],
  progress: ([{ jobId, data }]: QueueEventsMap['progress']) => [jobId, data],
  stalled: ([{ jobId }]: QueueEventsMap['stalled']) => [jobId],
  waiting: ([{ jobId }]: QueueEventsMap['waiting']) => [jobId, null],
  delayed: ([{ jobId, delay }]: QueueEventsMap['delayed']) => [jobId, delay],
  duplicated: ([{ jobId }]: QueueEventsMap['duplicated']) => [jobId],
  removed: ([{ jobId }]: QueueEventsMap['removed']) => [jobId],
  drained: () => [],
  paused: () => [],
  resumed: () => [],
};

export const GLOBAL = 'global:';

/** Emits every event of the log under its global name. */
export function emitGlobally(log: QueueEvents, emit: (event: string, args: unknown[]) => void): void {
  for (const event of Object.keys(ARGUMENTS) as Logged[]) {
    const read = ARGUMENTS[event] as (args: unknown[]) => unknown[];
    log.on(event, (...args: unknown[]) => emit(`${GLOBAL}${event}`, read(args)));
  }
}
