// Cancels all jobs of a queue that match a selection, in chunks, so that no call blocks a store for long.
import { cancelReason } from '../handle/cancel.js';
import { HoldfastError } from '../errors.js';
import { encode } from '../job/payload.js';
import { storedName } from '../job/step-names.js';
import { MAX_DELAY_MS, checkInteger, invalidOption } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';
import { batchOf } from '../store/capabilities.js';
import type { ListName, Store } from '../store/contract/index.js';
import { CHUNK } from './cleaning.js';

/** The states of jobs that can be cancelled. */
export type CancellableType = 'waiting' | 'wait' | 'prioritized' | 'delayed' | 'active' | 'waiting-children';

export interface CancelJobsOptions {
  /** Default: all jobs that have not finished. */
  types?: CancellableType[];
  /** Only jobs that last started, or else were added, at least this long ago. */
  olderThanMs?: number;
  /** The most jobs that are cancelled. Default: no limit. */
  limit?: number;
  reason?: string;
  /** Called after each chunk with the number of jobs that are cancelled so far. Return false to stop. */
  onProgress?: (cancelled: number) => boolean | void;
}

// If a filter were ignored, the call would cancel more than was meant.
const NAMES = new OptionNames<CancelJobsOptions>({
  of: 'cancelJobs',
  known: { types: true, olderThanMs: true, limit: true, reason: true, onProgress: true },
  refuses: 'unknown',
});

const LISTS: Record<CancellableType, ListName> = {
  waiting: 'waiting',
  wait: 'waiting',
  prioritized: 'prioritized',
  delayed: 'delayed',
  active: 'active',
  'waiting-children': 'waiting-children',
};

/** Returns how many jobs were cancelled. Jobs that are added meanwhile may be cancelled too. */
export async function cancelJobs(store: Store, queue: string, options: CancelJobsOptions): Promise<number> {
  const { types, olderThanMs, limit = Number.MAX_SAFE_INTEGER, reason, onProgress } = NAMES.checked(options);
  checkInteger('limit', limit, { min: 1 });
  if (onProgress !== undefined && typeof onProgress !== 'function') throw invalidOption('onProgress', onProgress, 'a function');
  if (olderThanMs !== undefined) checkInteger('olderThanMs', olderThanMs, { max: MAX_DELAY_MS });
  const change = { kind: 'cancel', reason: cancelReason(reason) } as const;
  const selection = { lists: listsOf(types), ...(olderThanMs !== undefined && { olderThanMs }) };
  const chunk = Math.min(CHUNK, batchOf(store.capabilities));
  let cancelled = 0;
  for (let more = true; more && cancelled < limit; ) {
    const reply = await store.change(queue, { ...selection, limit: Math.min(chunk, limit - cancelled) }, change);
    cancelled += reply.changed.length;
    more = reply.more && reply.changed.length > 0 && onProgress?.(cancelled) !== false;
  }
  return cancelled;
}

function listsOf(types: CancellableType[] | undefined): ListName[] {
  if (types === undefined) return [...new Set(Object.values(LISTS))];
  if (!Array.isArray(types) || types.length === 0)
    throw invalidOption('types', types, `a list of ${Object.keys(LISTS).join(', ')}`);
  return types.map((type, index) => {
    if (!Object.hasOwn(LISTS, type)) throw invalidOption(`types[${index}]`, type, `one of ${Object.keys(LISTS).join(', ')}`);
    return LISTS[type];
  });
}

/** Sends a signal to a job. Returns false if the job has one of this name with other data already, or has waited for it in vain. */
export async function sendSignal(
  store: Store,
  { stored, name: queue }: { stored: string; name: string },
  jobId: string,
  name: string,
  data: unknown,
): Promise<boolean> {
  const value = data === undefined ? 'null' : encode(`The data of signal "${name}"`, data);
  const [reply] = await store.write(stored, [{ kind: 'step', jobId, name: storedName('signal', name), value }]);
  const facts = { jobId, queue };
  const subject = `signal "${name}": job ${jobId} of queue "${queue}"`;
  const status = reply?.status;
  if (status === 'done') return reply?.value === value;
  if (status === 'ended') throw new HoldfastError('JOB_STATE', `${subject} has finished, so it waits for nothing.`, facts);
  if (status !== 'full') throw new HoldfastError('JOB_MISSING', `${subject} does not exist (any more).`, facts);
  const hint = 'keep the data elsewhere, and send a reference';
  throw new HoldfastError('PAYLOAD_TOO_LARGE', `${subject} has no room for it: ${hint}.`, facts);
}
